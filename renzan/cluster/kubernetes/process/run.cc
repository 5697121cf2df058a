#include "renzan/cluster/kubernetes/process/run.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "renzan/base/log.h"
#include "renzan/base/process/signals.h"
#include "renzan/cluster/kubernetes/api/http_api.h"
#include "renzan/cluster/kubernetes/process/change_queue.h"
#include "renzan/cluster/kubernetes/process/counted_api.h"
#include "renzan/cluster/kubernetes/process/fenced_api.h"
#include "renzan/cluster/kubernetes/process/lease_keeper.h"
#include "renzan/cluster/kubernetes/process/line_file.h"
#include "renzan/cluster/kubernetes/process/metrics.h"
#include "renzan/cluster/kubernetes/process/path_server.h"
#include "renzan/cluster/kubernetes/process/slewed_clock.h"
#include "renzan/cluster/record/decision_log.h"
#include "renzan/cluster/record/recorder.h"
#include "renzan/cluster/record/recording_file.h"

namespace renzan::cluster::kubernetes {
namespace {

// If the server does not answer, the Lease must expire here before it expires elsewhere.
constexpr double kLeaseRequestSeconds = 4;
constexpr double kLongestSleepSeconds = 1;
// Longer than any cycle of a cluster of 20,000 nodes.
constexpr double kLongestTurnSeconds = 60;
constexpr double kLongestSilenceSeconds = 30;
// Metrics of a large cluster take as long as a small cycle.
constexpr double kBetweenMetricsSeconds = 1;
// Each may hold a whole recording in memory.
constexpr unsigned kMostDebugConnections = 2;
const std::vector<double> kDelayBounds = {0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30};

uint64_t SeedOf(const std::string& identity) { return std::hash<std::string>()(identity); }

// What the probes' threads may read of the working thread. Thread-safe.
class Vitals {
 public:
  explicit Vitals(const Clock& clock) : clock_(clock) {}
  // Called at every turn, once a second at least.
  void Beat(const std::function<std::string()>& metrics) {
    std::lock_guard lock(mutex_);
    beat_at_ = clock_.MonotonicSeconds();
    if (!metrics_.empty() && beat_at_ < metrics_at_ + kBetweenMetricsSeconds) return;
    metrics_ = metrics();
    metrics_at_ = beat_at_;
  }
  std::string metrics() const {
    std::lock_guard lock(mutex_);
    return metrics_;
  }
  double silent_seconds() const {
    std::lock_guard lock(mutex_);
    return clock_.MonotonicSeconds() - beat_at_;
  }

 private:
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::string metrics_;
  double beat_at_ = clock_.MonotonicSeconds();
  double metrics_at_ = 0;
};

Probes ProbesOf(const Vitals& vitals, const LeaseKeeper& lease, const Clock& clock) {
  const auto answer = [](double silent_seconds, double most, const char* what) {
    if (silent_seconds <= most) return ServerAnswer{200, "ok\n"};
    return ServerAnswer{503, fmt::format("{} for {:.0f} s\n", what, silent_seconds)};
  };
  return {{"/healthz",
           [&vitals, answer] {
             return answer(vitals.silent_seconds(), kLongestTurnSeconds, "no turn has ended");
           }},
          {"/readyz", [&lease, &clock, answer] {
             return answer(clock.MonotonicSeconds() - lease.answered_at(), kLongestSilenceSeconds,
                           "the API server has not answered");
           }}};
}

// `expires`: the admission webhook's certificate; 0: there is none.
Probes MetricsOf(const Vitals& vitals, const std::atomic<double>& expires) {
  return {{"/metrics", [&] {
             const double at = expires;
             return ServerAnswer{200, vitals.metrics() + (at == 0 ? "" : MetricsOfCertificate(at)),
                                 "text/plain; version=0.0.4; charset=utf-8"};
           }}};
}

Probes DebugProbesOf(const record::Recorder& recorder) {
  return {{"/debug/cycles", [&recorder] {
             if (recorder.counts().taken == 0)
               return ServerAnswer{503,
                                   "no cycle has been recorded: this replica does not lead, or has "
                                   "just begun to\n"};
             return ServerAnswer{200, recorder.Recording(), "application/zstd"};
           }}};
}

// False if a signal came first.
bool WaitUntilItLeads(const LeaseKeeper& lease, const SignalQueue& signals, ChangeQueue& changes,
                      Vitals& vitals, const ApiCounts& requests) {
  while (!lease.leads()) {
    vitals.Beat([&] { return MetricsOfFollower(requests.values()); });
    if (signals.Next(kLongestSleepSeconds, changes.fd()) != 0) return false;
    changes.Take();
  }
  return true;
}

void Lead(const RunOptions& options, const ApiFactory& make_api, const LeaseKeeper& lease,
          const SignalQueue& signals, ChangeQueue& changes, Vitals& vitals,
          const ApiCounts& requests_sent, record::Recorder& recorder, LineFile& decision_lines,
          const Clock& clock) {
  std::optional<record::RecordingFile> recording;
  if (!options.record.empty()) recording.emplace(options.record, recorder);
  record::DecisionLog decision_log;
  std::stop_source ending;
  const ApiFactory fenced = MakeFencedApis(make_api, [&] { return lease.leads(); });
  const auto api = fenced(ending.get_token());
  const auto requests = MakeParallelRequests(fenced, options.connections, ending.get_token());
  ControllerOptions controller_options = options.controller;
  controller_options.identity = options.lease.identity;
  controller_options.serves_admission = !options.admission.listen.empty();
  controller_options.on_cycle = [&](const record::CycleView& cycle) {
    decision_lines.Append(decision_log.Lines(cycle));
    recorder.Take(cycle);
  };
  const SlewedClock job_clock(clock);
  Controller controller(controller_options, *api, *requests, job_clock);
  std::map<std::string, std::unique_ptr<Watch>> watches;
  for (const Source source : kAllSources)
    watches.emplace(
        KindOf(source).plural,
        std::make_unique<Watch>(
            make_api, WatchOptions{.kind = KindOf(source), .seed = SeedOf(options.lease.identity)},
            [&changes, source](WatchChange change) { changes.Put(source, std::move(change)); },
            [](const Error& error) { LogWarning("{}", error.what()); }, clock));
  Histogram delays(kDelayBounds);
  for (;;) {
    const auto taken = changes.Take();
    if (!taken.empty()) delays.Observe(changes.delay_seconds());
    for (const auto& [source, change] : taken) controller.Take(source, change);
    const TimeMs until = controller.Turn();
    if (!lease.leads())
      Fail(ErrorCode::kTempFail,
           "the lease {}/{} was not renewed in time, so another replica may lead: start this "
           "one again",
           options.lease.ns, options.lease.name);
    vitals.Beat([&] {
      std::map<std::string, WatchCounts> counts;
      for (const auto& [kind, watch] : watches) counts[kind] = watch->counts();
      return MetricsOfLeader(
          {controller, counts, delays, recorder.counts(), clock.MonotonicSeconds()},
          requests_sent.values());
    });
    const double left = static_cast<double>(until - job_clock.UnixMs()) / kSecond;
    if (signals.Next(std::clamp(left, 0.0, kLongestSleepSeconds), changes.fd()) != 0) return;
  }
}

}  // namespace

void RunController(const RunOptions& options) {
  LogWithTimes();
  std::signal(SIGPIPE, SIG_IGN);
  // Before any thread is started, so that all of them block these signals.
  const SignalQueue signals({SIGTERM, SIGINT});
  const Clock& clock = SystemClock();
  const Access access = FindAccess(options.access, clock);
  ApiCounts requests;
  const ApiFactory make_api = MakeCountedApis(MakeHttpApis(access), requests, clock);
  LineFile decision_lines(options.decision_log);
  record::Recorder recorder({.program = options.program, .writer = options.lease.identity});
  LogInfo("{} controls the cluster at {} ({}) once it leads", options.lease.identity, access.server,
          access.from);
  ChangeQueue changes(clock);
  const LeaseKeeper lease(
      options.lease,
      MakeCountedApis(MakeHttpApis(access, {.request_timeout_seconds = kLeaseRequestSeconds}),
                      requests, clock),
      [&] { changes.Wake(); }, clock);
  Vitals vitals(clock);
  std::atomic<double> certificate_expires = 0;
  std::optional<PathServer> probes;
  if (!options.listen.empty()) {
    Probes answers = ProbesOf(vitals, lease, clock);
    if (options.metrics.empty()) answers.merge(MetricsOf(vitals, certificate_expires));
    probes.emplace(options.listen, PathHandlers{.get = std::move(answers)});
    LogInfo("probes{} at {}", options.metrics.empty() ? " and metrics" : "", probes->url());
  }
  std::optional<PathServer> metrics;
  if (!options.metrics.empty()) {
    metrics.emplace(options.metrics, PathHandlers{.get = MetricsOf(vitals, certificate_expires)},
                    "--metrics");
    LogInfo("only metrics at {}", metrics->url());
  }
  std::optional<PathServer> debug;
  if (options.debug_port) {
    debug.emplace(fmt::format("127.0.0.1:{}", *options.debug_port),
                  PathHandlers{.get = DebugProbesOf(recorder)}, "--debug-port", std::nullopt,
                  ServerLimits{.connections = kMostDebugConnections});
    LogInfo("recorded cycles at {}/debug/cycles", debug->url());
  }
  std::optional<Admission> admission;
  if (!options.admission.listen.empty()) {
    AdmissionOptions with_metric = options.admission;
    with_metric.on_certificate = [&](double expires) { certificate_expires = expires; };
    with_metric.ns = options.lease.ns;
    admission.emplace(std::move(with_metric), make_api, SeedOf(options.lease.identity), clock);
    LogInfo("admission reviews at {}", admission->url());
  }
  if (!WaitUntilItLeads(lease, signals, changes, vitals, requests)) return;
  LogInfo("{} leads", options.lease.identity);
  Lead(options, make_api, lease, signals, changes, vitals, requests, recorder, decision_lines,
       clock);
  LogInfo("{} ends; gangs keep running", options.lease.identity);
}

}  // namespace renzan::cluster::kubernetes
