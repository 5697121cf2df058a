#include "renzan/cluster/backend/kubernetes_log.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/cluster/kubernetes/api/wait.h"
#include "renzan/cluster/kubernetes/objects/gang_job_manifest.h"
#include "renzan/cluster/kubernetes/objects/json_fields.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/kubernetes/objects/pod.h"
#include "renzan/cluster/kubernetes/objects/worker_pod.h"

namespace renzan::cluster {
namespace {

using kubernetes::GangJob;
using nlohmann::json;

constexpr double kPollSeconds = 0.25;

bool RunsAttempt(const GangJob& job, int64_t attempt) {
  return attempt + 1 == job.status.attempts && job.status.state != RecordState::kPending &&
         !HasEnded(job.status.state);
}

// Nothing if there is no such pod.
std::optional<json> FindPod(kubernetes::Api& api, const GangJob& job, int64_t attempt,
                            int64_t worker) {
  const std::string name =
      kubernetes::PodName(job.name, static_cast<int>(attempt), static_cast<int>(worker));
  try {
    json pod = api.Get(kubernetes::Pods(), job.ns, name);
    if (kubernetes::PodFrom(pod).job_uid == job.uid) return pod;
  } catch (const kubernetes::ApiError& error) {
    if (!error.is_not_found()) throw;
  }
  return std::nullopt;
}

bool IsRunning(kubernetes::Api& api, const GangJob& job, int64_t attempt, int64_t worker) {
  const std::optional<json> pod = FindPod(api, job, attempt, worker);
  return pod && kubernetes::PodFrom(*pod).running;
}

void CheckWorker(const GangJob& job, int64_t attempt, int64_t worker) {
  const int workers = NumWorkers(job.status.placement);
  if (RunsAttempt(job, attempt) && worker >= workers)
    Fail(ErrorCode::kNoInput, "attempt {} of job {} has {}, numbered from 0", attempt, job.path(),
         Counted(workers, "worker"));
}

[[noreturn]] void FailGone(const GangJob& job, int64_t attempt, int64_t worker) {
  Fail(ErrorCode::kNoInput,
       "the output of worker {} of attempt {} of job {} is gone with its pod: Kubernetes keeps "
       "output no longer",
       worker, attempt, job.path());
}

}  // namespace

void ReadWorkerLog(kubernetes::Api& api, kubernetes::PodLogs& logs,
                   const std::function<GangJob()>& read_job, const LogQuery& query,
                   const std::function<void(std::string_view piece)>& take) {
  GangJob job = read_job();
  if (query.attempt >= job.status.attempts)
    Fail(ErrorCode::kNoInput, "job {} has {}, numbered from 0: there is no attempt {}", job.path(),
         Counted(job.status.attempts, "attempt"), query.attempt);
  if (job.status.attempts == 0 && (!query.follow || HasEnded(job.status.state)))
    Fail(ErrorCode::kNoInput, "job {} has not started: there is no output", job.path());
  int64_t attempt = query.attempt >= 0 ? query.attempt : std::max(0, job.status.attempts - 1);
  std::optional<int64_t> tail_lines;
  if (query.tail >= 0) tail_lines = query.tail;
  for (bool is_first = true;; kubernetes::WaitFor(kPollSeconds, {}), job = read_job()) {
    const std::optional<json> pod =
        attempt < job.status.attempts ? FindPod(api, job, attempt, query.worker) : std::nullopt;
    const bool runs = RunsAttempt(job, attempt);
    if (attempt < job.status.attempts) CheckWorker(job, attempt, query.worker);
    if (pod) {
      const kubernetes::Pod worker = kubernetes::PodFrom(*pod);
      if (worker.running || worker.started) {
        const json* const container = kubernetes::MainContainer(kubernetes::At(*pod, {"spec"}));
        const kubernetes::LogRequest request{
            .ns = job.ns,
            .pod = worker.name,
            .container = container == nullptr ? "" : kubernetes::TextAt(*container, {"name"}),
            .follow = query.follow,
            .tail_lines = tail_lines};
        logs.Read(request, take);
        // The server ends a connection that is idle for hours.
        if (query.follow && IsRunning(api, job, attempt, query.worker)) {
          tail_lines = 0;
          continue;
        }
      } else if (!worker.ended && query.follow) {
        continue;  // its image is still being fetched
      } else if (!query.follow) {
        Fail(ErrorCode::kNoInput, "worker {} of job {} has not started yet: there is no output",
             query.worker, job.path());
      }
    } else if (!query.follow ||
               (!runs && (query.attempt >= 0 || (is_first && HasEnded(job.status.state))))) {
      FailGone(job, attempt, query.worker);
    } else if (runs || attempt >= job.status.attempts) {
      if (HasEnded(job.status.state)) return;
      continue;  // the pod is about to be created
    }
    // This attempt's output is complete.
    if (!query.follow || query.attempt >= 0) return;
    is_first = false;
    tail_lines.reset();
    ++attempt;
    job = read_job();
    if (HasEnded(job.status.state) && attempt >= job.status.attempts) return;
  }
}

}  // namespace renzan::cluster
