#include "renzan/cluster/backend/kubernetes_documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "renzan/cluster/kubernetes/controller/use_book.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/kubernetes/objects/pod.h"
#include "renzan/cluster/kubernetes/objects/queue.h"
#include "renzan/cluster/kubernetes/objects/time_text.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster {
namespace {

using kubernetes::GangJob;
using kubernetes::GangJobStatus;
using kubernetes::Pod;
using nlohmann::json;

constexpr int64_t kMebibyte = 1 << 20;

template <typename T>
Document OrNull(const std::optional<T>& value) {
  return value ? Document(*value) : Document();
}

int64_t AmountOf(const GangJob& job, const char* kind) {
  const auto at = job.per_worker.find(kind);
  return at == job.per_worker.end() ? 0 : at->second;
}

bool HasWorkers(const GangJobStatus& status) {
  return status.state != RecordState::kPending && !HasEnded(status.state);
}

Document PlacementOf(const std::map<std::string, int>& workers) {
  Document placement = Document::array();
  for (const auto& [node, count] : workers)
    placement.push_back({{"node", node}, {"workers", count}});
  return placement;
}

// Of an earlier attempt there is only what its pods say, as long as they exist.
Document AttemptDocument(const GangJob& job, int number, const std::vector<Pod>& pods) {
  const GangJobStatus& status = job.status;
  const bool is_last = number + 1 == status.attempts;
  const bool runs = is_last && HasWorkers(status);
  std::optional<TimeMs> started, ended;
  Document exit_code;
  std::string message;
  std::map<std::string, int> workers;
  for (const Pod& pod : pods) {
    if (pod.attempt != number) continue;
    if (pod.started) started = std::min(started.value_or(*pod.started), *pod.started);
    if (pod.finished) ended = std::max(ended.value_or(0), *pod.finished);
    if (pod.ended && (exit_code.is_null() || exit_code == 0)) exit_code = pod.exit_code;
    if (message.empty() && !pod.reason.empty() && pod.exit_code != 0)
      message = fmt::format("worker {}: {}", pod.rank, pod.reason);
    if (!pod.node.empty()) ++workers[pod.node];
  }
  if (runs) {
    started = status.started;
    ended.reset();
    exit_code = nullptr;
    workers.clear();
    for (const NodeShare& share : status.placement) workers[share.node] = share.workers;
  } else if (is_last && HasEnded(status.state)) {
    ended = status.ended;
    exit_code = OrNull(status.exit_code);
    message = status.message;
  }
  return {{"number", number},
          {"state", runs ? NameOf(status.state) : "ended"},
          {"started", OrNull(started)},
          {"ended", OrNull(ended)},
          {"exit_code", exit_code},
          {"message", message},
          {"placement", PlacementOf(workers)}};
}

Document EventsOf(const json& events) {
  Document list = Document::array();
  for (const json& event : events)
    list.push_back({{"time", OrNull(kubernetes::ParseTime(TextAt(event, {"lastTimestamp"})))},
                    {"kind", TextAt(event, {"reason"})},
                    {"text", TextAt(event, {"message"})}});
  std::stable_sort(list.begin(), list.end(),
                   [](const Document& a, const Document& b) { return a["time"] < b["time"]; });
  return list;
}

double GpuSeconds(const GangJob& job, TimeMs now) {
  const GangJobStatus& status = job.status;
  int64_t worker_ms = status.attained_worker_ms;
  if (HasWorkers(status))
    worker_ms += std::max<TimeMs>(0, now - status.started) * NumWorkers(status.placement);
  return static_cast<double>(worker_ms) / kSecond *
         static_cast<double>(AmountOf(job, kubernetes::kGpuResource));
}

// Why it waits, or is being stopped.
std::string ReasonOf(const GangJob& job) {
  if (!job.invalid.empty()) return job.invalid;
  const GangJobStatus& status = job.status;
  if (status.id == 0) return "no controller has seen it yet";
  if (status.state == RecordState::kPending) return status.message;
  return HasEnded(status.state) ? "" : status.stop_reason;
}

}  // namespace

Document JobDocument(const GangJob& job) {
  const GangJobStatus& status = job.status;
  Document nodes = Document::array();
  for (const NodeShare& share : status.placement) nodes.push_back(share.node);
  const bool readable = job.invalid.empty();
  const std::string reason = ReasonOf(job);
  return {{"id", status.id == 0 ? Document() : Document(status.id)},
          {"name", job.name},
          {"queue", job.spec.queue},
          {"user", job.ns},
          {"priority", job.spec.priority},
          {"state", NameOf(status.state)},
          {"reason", reason.empty() ? Document() : Document(reason)},
          {"workers", NumWorkers(status.placement)},
          {"min_workers", readable ? job.spec.min_workers() : 0},
          {"max_workers", readable ? job.spec.max_workers() : 0},
          {"resources",
           {{"cpu", static_cast<double>(AmountOf(job, "cpu")) / 1000},
            {"memory_mib", (AmountOf(job, "memory") + kMebibyte - 1) / kMebibyte},
            {"gpu", AmountOf(job, kubernetes::kGpuResource)}}},
          {"nodes", nodes},
          {"submitted", job.created},
          {"started", OrNull(status.first_started)},
          {"ended", OrNull(status.ended)},
          {"exit_code", OrNull(status.exit_code)},
          {"attempts", status.attempts},
          {"failures", status.failures},
          {"preemptions", status.preemptions},
          {"progress", nullptr}};
}

Document ShownJobDocument(const GangJob& job, const json& pods, const json& events, TimeMs now) {
  Document out = JobDocument(job);
  out["spec"] = At(*job.object, {"spec"}).dump();
  const TimeMs timeout = job.spec.timeout_ms();
  out["timeout_ms"] = timeout > 0 ? Document(timeout) : Document();
  out["message"] = job.status.message;
  std::vector<Pod> of_job;
  for (const json& pod : pods)
    if (Pod each = kubernetes::PodFrom(pod); each.job_uid == job.uid)
      of_job.push_back(std::move(each));
  std::sort(of_job.begin(), of_job.end(),
            [](const Pod& a, const Pod& b) { return a.rank < b.rank; });
  out["attempts_list"] = Document::array();
  for (int number = 0; number < job.status.attempts; ++number)
    out["attempts_list"].push_back(AttemptDocument(job, number, of_job));
  out["events"] = EventsOf(events);
  out["gpu_seconds"] = GpuSeconds(job, now);
  out["cost"] = nullptr;
  return out;
}

Document UsageDocument(const std::vector<GangJob>& jobs, TimeMs now) {
  std::map<std::string, double> queues, users;
  std::map<std::pair<std::string, std::string>, double> queue_users;
  Document of_jobs = Document::array();
  for (const GangJob& job : jobs) {
    const double gpu_seconds = GpuSeconds(job, now);
    queues[job.spec.queue] += gpu_seconds;
    users[job.ns] += gpu_seconds;
    queue_users[{job.spec.queue, job.ns}] += gpu_seconds;
    of_jobs.push_back({{"id", job.status.id == 0 ? Document() : Document(job.status.id)},
                       {"queue", job.spec.queue},
                       {"user", job.ns},
                       {"gpu_seconds", gpu_seconds},
                       {"cost", nullptr}});
  }
  Document by_queue = Document::array(), by_user = Document::array();
  for (const auto& [name, gpu_seconds] : queues)
    by_queue.push_back({{"name", name},
                        {"gpu_seconds", gpu_seconds},
                        {"cost", nullptr},
                        {"borrowed_gpu_seconds", nullptr},
                        {"lent", Document::array()}});
  for (const auto& [name, gpu_seconds] : users)
    by_user.push_back({{"name", name}, {"gpu_seconds", gpu_seconds}, {"cost", nullptr}});
  Document by_both = Document::array();
  for (const auto& [owner, gpu_seconds] : queue_users)
    by_both.push_back({{"queue", owner.first},
                       {"user", owner.second},
                       {"gpu_seconds", gpu_seconds},
                       {"cost", nullptr}});
  return {{"jobs", of_jobs},
          {"more_jobs", 0},
          {"queues", by_queue},
          {"users", by_user},
          {"queue_users", by_both}};
}

Document FairSharesDocument(const nlohmann::json& queues, TimeMs now) {
  Document shares = Document::array();
  for (const nlohmann::json& queue : queues) {
    const std::optional<FairShare> fair_share = kubernetes::HoldingQueueSpec(queue).fair_share;
    const std::string name = TextAt(queue, {"metadata", "name"});
    if (!fair_share) continue;
    kubernetes::UseBook use;
    use.Recover(name, At(queue, {"status"}));
    Document users = Document::array();
    for (const auto& [ns, seconds] : use.Of(name, fair_share->half_life, now))
      users.push_back({{"name", ns}, {"seconds", seconds}});
    shares.push_back({{"queue", name},
                      {"half_life_ms", fair_share->half_life},
                      {"of", TextAt(queue, {"status", "usedLately", "of"}, "gpu")},
                      {"users", users}});
  }
  return shares;
}

}  // namespace renzan::cluster
