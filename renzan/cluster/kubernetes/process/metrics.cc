#include "renzan/cluster/kubernetes/process/metrics.h"

#include <algorithm>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/kubernetes/process/prometheus_text.h"
#include "renzan/cluster/record/cycle_json.h"

namespace renzan::cluster::kubernetes {
namespace {

void PutLeads(PrometheusText& text, bool leads) {
  text.Family("renzan_leads", "gauge", "Whether this replica leads: 1, or 0.");
  text.Sample(leads ? 1 : 0);
}

void PutRequests(PrometheusText& text, const ApiCounts::Values& requests) {
  text.Family("renzan_api_requests_total", "counter",
              "Requests to the API server, by verb and status; none: no answer came.");
  for (const auto& [key, count] : requests.requests)
    text.Sample({{"verb", key.first}, {"code", key.second}}, static_cast<double>(count));
  text.Family("renzan_api_request_duration_seconds", "histogram",
              "Time until the answer, by verb, without watches.");
  for (const auto& [verb, seconds] : requests.seconds) text.Sample({{"verb", verb}}, seconds);
}

void PutJobs(PrometheusText& text, const Controller& controller) {
  std::map<std::string, int> states = {
      {"pending", 0}, {"running", 0}, {"stopping", 0}, {"resizing", 0}};
  for (const auto& [id, live] : controller.live()) ++states[NameOf(live.object.status.state)];
  text.Family("renzan_jobs", "gauge", "Jobs that have not ended, by state.");
  for (const auto& [state, jobs] : states) text.Sample({{"state", state}}, jobs);
  const Snapshot& snapshot = controller.snapshot();
  std::map<std::pair<int, WaitReason>, int> waiting;
  for (const Wait& wait : controller.waits())
    if (const Job* job = snapshot.Find(wait.job); job != nullptr)
      ++waiting[{job->queue, wait.reason}];
  text.Family("renzan_waiting_jobs", "gauge", "Jobs left waiting by the last cycle, by reason.");
  for (const auto& [key, jobs] : waiting)
    text.Sample(
        {{"queue", snapshot.queues[key.first].name}, {"reason", record::WordOf(key.second)}}, jobs);
}

void PutWaiting(PrometheusText& text, const Controller& controller) {
  const Snapshot& snapshot = controller.snapshot();
  std::array<TimeMs, kSizeClasses.size()> longest{};
  for (const Job& job : snapshot.jobs)
    if (job.state == JobState::kPending && job.held.empty()) {
      TimeMs& of_class = longest[SizeClassOf(snapshot, job)];
      of_class = std::max(of_class, snapshot.now - job.waiting_since);
    }
  text.Family("renzan_longest_wait_seconds", "gauge",
              "The longest time that a pending job has waited, by the GPUs needed.");
  for (size_t at = 0; at < kSizeClasses.size(); ++at)
    text.Sample({{"gpus", kSizeClasses[at]}}, static_cast<double>(longest[at]) / kSecond);
  text.Family("renzan_wait_seconds", "histogram",
              "How long jobs had waited when they started, by the GPUs needed.");
  for (size_t at = 0; at < kSizeClasses.size(); ++at)
    text.Sample({{"gpus", kSizeClasses[at]}}, controller.counts().waited_seconds()[at]);
}

void PutNodes(PrometheusText& text, const Snapshot& snapshot) {
  int usable = 0, others = 0;
  int64_t gpus = 0;
  for (const Node& node : snapshot.nodes) {
    const bool ready = node.state == NodeState::kReady;
    ++(ready ? usable : others);
    if (ready) gpus += node.capacity.gpu();
  }
  text.Family("renzan_nodes", "gauge", "Nodes, by whether they take work.");
  text.Sample({{"state", "ready"}}, usable);
  text.Sample({{"state", "other"}}, others);
  text.Family("renzan_gpus", "gauge", "GPUs of nodes that take work.");
  text.Sample(static_cast<double>(gpus));
}

void PutCounter(PrometheusText& text, const char* name, const char* help, const char* label,
                const std::map<std::string, int64_t>& counts) {
  text.Family(name, "counter", help);
  for (const auto& [of, count] : counts) text.Sample({{label, of}}, static_cast<double>(count));
}

void PutCounts(PrometheusText& text, const Controller& controller) {
  const ControllerCounts& counts = controller.counts();
  const Snapshot& snapshot = controller.snapshot();
  text.Family("renzan_cycle_duration_seconds", "histogram", "Scheduling cycles.");
  text.Sample({}, counts.cycle_seconds());
  PutCounter(text, "renzan_decisions_total", "Decisions of scheduling cycles; for scaling: nodes.",
             "decision", counts.decisions());
  PutCounter(text, "renzan_stops_total", "Preemptions: stops that the scheduler decided.", "reason",
             counts.stops());
  PutCounter(text, "renzan_attempts_total", "Attempts that have ended, by how they ended.", "end",
             controller.attempt_ends());
  text.Family("renzan_gpu_seconds_total", "counter", "GPU time of gangs, by queue.");
  for (const auto& [queue, seconds] : counts.gpu_seconds())
    text.Sample({{"queue", snapshot.queues[queue].name}}, seconds);
  text.Family("renzan_cost_total", "counter",
              "Price of nodes times their time, by pool, in the currency of the prices.");
  for (const auto& [pool, cost] : counts.cost())
    text.Sample({{"pool", snapshot.pools[pool].name}}, cost);
  text.Family("renzan_failed_requests_total", "counter",
              "Requests for jobs and pods that failed and are tried again.");
  text.Sample(static_cast<double>(controller.failed_requests()));
}

void PutWatches(PrometheusText& text, const LeaderVitals& vitals) {
  const auto put = [&](const char* name, const char* help, int64_t WatchCounts::*which) {
    text.Family(name, "counter", help);
    for (const auto& [kind, count] : vitals.watches)
      text.Sample({{"kind", kind}}, static_cast<double>(count.*which));
  };
  put("renzan_watch_events_total", "What watches have reported.", &WatchCounts::events);
  put("renzan_watch_failures_total", "Requests of watches that failed.", &WatchCounts::failures);
  put("renzan_watch_lists_total", "Complete lists; each but the first is a relist.",
      &WatchCounts::lists);
  text.Family("renzan_watch_silence_seconds", "gauge",
              "Time since a watch last reported anything.");
  for (const auto& [kind, count] : vitals.watches)
    if (count.last_seconds >= 0) text.Sample({{"kind", kind}}, vitals.now - count.last_seconds);
  text.Family("renzan_change_delay_seconds", "histogram",
              "From the delivery of a change by its watch until the controller takes it.");
  text.Sample({}, vitals.change_delay_seconds);
}

void PutRecorder(PrometheusText& text, const record::RecorderCounts& recorder) {
  text.Family("renzan_recorded_cycles", "gauge", "Cycles that can be replayed.");
  text.Sample(static_cast<double>(recorder.kept));
  text.Family("renzan_recorded_bytes", "gauge", "Memory that recorded cycles take.");
  text.Sample(static_cast<double>(recorder.bytes));
  text.Family("renzan_unrecorded_cycles_total", "counter",
              "Cycles that decided something while recording was too far behind.");
  text.Sample(static_cast<double>(recorder.lost));
}

}  // namespace

std::string MetricsOfCertificate(double expires) {
  PrometheusText text;
  text.Family("renzan_admission_certificate_expiry_timestamp_seconds", "gauge",
              "When the certificate that the admission webhook serves expires, since 1970.");
  text.Sample(expires);
  return text.Take();
}

std::string MetricsOfFollower(const ApiCounts::Values& requests) {
  PrometheusText text;
  PutLeads(text, false);
  PutRequests(text, requests);
  return text.Take();
}

std::string MetricsOfLeader(const LeaderVitals& vitals, const ApiCounts::Values& requests) {
  PrometheusText text;
  PutLeads(text, true);
  PutJobs(text, vitals.controller);
  PutWaiting(text, vitals.controller);
  PutNodes(text, vitals.controller.snapshot());
  PutCounts(text, vitals.controller);
  PutWatches(text, vitals);
  PutRecorder(text, vitals.recorder);
  PutRequests(text, requests);
  return text.Take();
}

}  // namespace renzan::cluster::kubernetes
