#include "renzan/cluster/backend/kubernetes_log.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/cluster/kubernetes/objects/gang_job_manifest.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/kubernetes/objects/pod.h"
#include "renzan/cluster/kubernetes/objects/worker_pod.h"
#include "renzan/cluster/spec/json_fields.h"

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

// The output of one attempt, as far as it has been passed on. A server knows no offsets: after a
// break it is read again from its beginning, and this much of it left out.
class Shown {
 public:
  void Again() { at_ = 0; }
  void Take(std::string_view piece, const std::function<void(std::string_view)>& take) {
    CheckHead(piece);
    const size_t known = std::min(piece.size(), bytes_ - std::min(bytes_, at_));
    at_ += piece.size();
    piece.remove_prefix(known);
    bytes_ += piece.size();
    if (!piece.empty()) take(piece);
  }
  size_t bytes() const { return bytes_; }

 private:
  // A node drops the beginning of a large log.
  void CheckHead(std::string_view piece) {
    constexpr size_t kHeadBytes = 4096;
    const std::string_view part = piece.substr(0, kHeadBytes - std::min(at_, kHeadBytes));
    const std::string_view known = std::string_view(head_).substr(std::min(at_, head_.size()));
    const size_t both = std::min(part.size(), known.size());
    if (part.substr(0, both) != known.substr(0, both))
      Fail(ErrorCode::kNoInput,
           "the connection broke, and the node no longer has the beginning of this output: follow "
           "it again with --tail");
    head_ += part.substr(both);
  }

  std::string head_;
  size_t bytes_ = 0, at_ = 0;
};

class WorkerLog {
 public:
  WorkerLog(kubernetes::Api& api, kubernetes::PodLogs& logs, const LogQuery& query,
            const std::function<void(std::string_view piece)>& take, const Clock& clock)
      : api_(api), logs_(logs), query_(query), take_(take), clock_(clock) {}

  void Begin(const GangJob& job) {
    if (query_.attempt >= job.status.attempts)
      Fail(ErrorCode::kNoInput, "job {} has {}, numbered from 0: there is no attempt {}",
           job.path(), Counted(job.status.attempts, "attempt"), query_.attempt);
    if (job.status.attempts == 0 && (!query_.follow || HasEnded(job.status.state)))
      Fail(ErrorCode::kNoInput, "job {} has not started: there is no output", job.path());
    attempt_ = query_.attempt >= 0 ? query_.attempt : std::max(0, job.status.attempts - 1);
    if (query_.tail >= 0) tail_lines_ = query_.tail;
  }

  // Passes on what there is. True: that was all.
  bool Read(const GangJob& job) {
    const bool is_known = attempt_ < job.status.attempts;
    const std::optional<json> pod =
        is_known ? FindPod(api_, job, attempt_, query_.worker) : std::nullopt;
    const bool runs = RunsAttempt(job, attempt_);
    if (is_known) CheckWorker(job, attempt_, query_.worker);
    if (pod) {
      const kubernetes::Pod worker = kubernetes::PodFrom(*pod);
      if (worker.running || worker.started) {
        ReadPod(job, *pod);
        // The server ends a connection that is idle for hours.
        if (query_.follow && IsRunning(api_, job, attempt_, query_.worker)) {
          tail_lines_ = 0;
          return false;
        }
      } else if (!worker.ended && query_.follow) {
        return false;  // its image is still being fetched
      } else if (!query_.follow) {
        Fail(ErrorCode::kNoInput, "worker {} of job {} has not started yet: there is no output",
             query_.worker, job.path());
      }
    } else if (!query_.follow ||
               (!runs && (query_.attempt >= 0 || (is_first_ && HasEnded(job.status.state))))) {
      FailGone(job, attempt_, query_.worker);
    } else if (runs || !is_known) {
      return HasEnded(job.status.state);  // otherwise the pod is about to be created
    }
    // This attempt's output is complete.
    if (!query_.follow || query_.attempt >= 0) return true;
    is_first_ = false;
    tail_lines_.reset();
    shown_ = {};
    ++attempt_;
    return false;
  }

  // After the end of an attempt: whether there will be no other one.
  bool IsComplete(const GangJob& job) const {
    return !is_first_ && HasEnded(job.status.state) && attempt_ >= job.status.attempts;
  }

  // Whether what has been passed on can be told from what has not.
  bool can_go_on() const { return query_.follow && !tail_lines_; }
  size_t bytes() const { return shown_.bytes(); }
  // Since the first output of a connection that reads a pod's log; 0: there was none.
  double TakeSecondsRead() {
    const double now = clock_.MonotonicSeconds();
    return now - std::exchange(reads_since_, std::nullopt).value_or(now);
  }

 private:
  void ReadPod(const GangJob& job, const json& pod) {
    const json* const container = kubernetes::MainContainer(At(pod, {"spec"}));
    const kubernetes::LogRequest request{
        .ns = job.ns,
        .pod = TextAt(pod, {"metadata", "name"}),
        .container = container == nullptr ? "" : TextAt(*container, {"name"}),
        .follow = query_.follow,
        .tail_lines = tail_lines_};
    shown_.Again();
    reads_since_.reset();
    logs_.Read(request, [this](std::string_view piece) {
      if (!reads_since_) reads_since_ = clock_.MonotonicSeconds();
      tail_lines_ ? take_(piece) : shown_.Take(piece, take_);
    });
  }

  kubernetes::Api& api_;
  kubernetes::PodLogs& logs_;
  const LogQuery& query_;
  const std::function<void(std::string_view piece)>& take_;
  const Clock& clock_;
  std::optional<double> reads_since_;
  int64_t attempt_ = 0;
  std::optional<int64_t> tail_lines_;
  bool is_first_ = true;
  Shown shown_;
};

}  // namespace

void ReadWorkerLog(kubernetes::Api& api, kubernetes::PodLogs& logs,
                   const std::function<GangJob()>& read_job, const LogQuery& query,
                   const std::function<void(std::string_view piece)>& take,
                   const Waiting& waiting) {
  GangJob job = read_job();
  WorkerLog log(api, logs, query, take, waiting.clock);
  log.Begin(job);
  Absence absence(waiting, fmt::format("the output of job {}", job.path()));
  for (bool is_old = false;;) {
    const size_t before = log.bytes();
    try {
      if (is_old) job = read_job();
      is_old = true;
      if (log.IsComplete(job) || log.Read(job)) return;
      absence.Over();
      waiting.wait(kPollSeconds);
    } catch (const kubernetes::ApiError& error) {
      if (!log.can_go_on() || error.code() != ErrorCode::kUnavailable) throw;
      const double seconds = log.TakeSecondsRead();
      absence.Wait(error.what(), {.answered = seconds > 0 || log.bytes() != before,
                                  .more = log.bytes() != before,
                                  .seconds = seconds});
    }
  }
}

}  // namespace renzan::cluster
