#include "renzan/cluster/backend/daemon.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/cluster/backend/daemon_log.h"
#include "renzan/cluster/spec/cluster_config.h"
#include "renzan/cluster/spec/inherited.h"
#include "renzan/cluster/spec/job_spec.h"
#include "renzan/cluster/spec/snapshot_json.h"

namespace renzan::cluster {
namespace {

constexpr int64_t kMaxPage = 1000;  // the daemon's limit

int64_t NumberOf(const std::string& job) {
  int64_t number = 0;
  const char* const end = job.data() + job.size();
  if (std::from_chars(job.data(), end, number).ptr != end || number <= 0)
    Fail(ErrorCode::kUsage,
         "ID {}: must be the number of a job, as shown by `renzan jobs` (on Kubernetes jobs also "
         "have names: choose it with --cluster)",
         job);
  return number;
}

// `before`: only jobs with lower ids, unless it is 0.
std::string Target(const JobsQuery& query, int64_t limit, int64_t before) {
  std::string target = fmt::format("/v1/jobs?all={}&limit={}", query.all ? 1 : 0, limit);
  if (before != 0) target += fmt::format("&before={}", before);
  for (const auto& [key, value] :
       {std::pair("queue", query.queue), {"user", query.user}, {"state", query.state}})
    if (!value.empty()) target += fmt::format("&{}={}", key, client::EscapeUrl(value));
  return target;
}

// The body of a request for the job.
std::string RequestOf(const Submission& submission) {
  const JobText& job = submission.job;
  if (!submission.image.empty() || !submission.pod_template.empty())
    Fail(ErrorCode::kUsage,
         "--image and --pod-template are for Kubernetes: choose it with --cluster, or leave them "
         "out");
  // The daemon parses it too, but errors must be found without a daemon.
  const spec::JobSpec spec = spec::ReadJobSpec(job.yaml, job.source, job.overrides);
  Document request = {{"spec", job.yaml},
                      {"source", job.source},
                      {"overrides", job.overrides},
                      {"submit_dir", submission.directory}};
  if (submission.inherited) {
    spec::Inherited inherited = *submission.inherited;
    std::vector<std::string> not_utf8;
    inherited.environment = spec::Exported(spec.exported, inherited.environment, not_utf8);
    for (const std::string& name : not_utf8)
      LogWarning("the job does not get {}, which is not UTF-8", name);
    request["inherited"] = Document::parse(spec::InheritedToJson(inherited));
  }
  try {
    return request.dump();
  } catch (const Document::exception&) {
    Fail(ErrorCode::kConfig, "{} is not UTF-8 text", job.source);
  }
}

const char* WordOf(JobAction action) {
  switch (action) {
    case JobAction::kCancel:
      return "cancel";
    case JobAction::kPreempt:
      return "preempt";
    case JobAction::kHold:
      return "hold";
    case JobAction::kRelease:
      return "release";
    case JobAction::kCheckpoint:
      break;
  }
  return "checkpoint";
}

const char* WordOf(NodeAction action) {
  switch (action) {
    case NodeAction::kCordon:
      return "cordon";
    case NodeAction::kDrain:
      return "drain";
    case NodeAction::kFail:
      return "fail";
    case NodeAction::kRestore:
      break;
  }
  return "restore";
}

ScheduleOptions SchedulingOf(const Document& status) {
  const Document& given = status.at("scheduling");
  ScheduleOptions options;
  options.min_between_resizes_ms = given.at("min_between_resizes_ms");
  options.max_checkpoint_interval_ms = given.at("max_checkpoint_interval_ms");
  options.overdue_after_ms = given.at("overdue_after_ms");
  options.levels.thresholds_ms = given.at("service_levels_ms").get<std::vector<TimeMs>>();
  options.levels.gittins = given.at("gittins");
  return options;
}

spec::WorkerClasses WorkerClassesOf(const Document& status) {
  spec::WorkerClasses worker_classes;
  for (const auto& [name, request] : status.at("worker_classes").items())
    worker_classes[name] = {.cpu = request.at("cpu"),
                            .memory = request.at("memory"),
                            .gpu = request.at("gpu"),
                            .other = request.at("other")};
  return worker_classes;
}

spec::Submitter SubmitterOf(const Document& status) {
  // A daemon of an earlier version checks it only when the job is submitted.
  if (!status.contains("you")) return {.administrator = true};
  const Document& you = status.at("you");
  return {.user = you.at("user"),
          .groups = you.at("groups").get<std::vector<std::string>>(),
          .administrator = you.at("administrator"),
          .max_priority = you.at("max_priority")};
}

class DaemonBackend : public Backend {
 public:
  DaemonBackend(client::Endpoint endpoint, std::string user)
      : client_(std::move(endpoint)), user_(std::move(user)) {}

  // Page by page, so as not to block the daemon.
  // As the daemon knows the caller: over TCP by their token.
  std::string User() override {
    const std::string user = SubmitterOf(Get("/v1/status")).user;
    return user.empty() ? user_ : user;
  }

  Document ListJobs(const JobsQuery& query) override {
    std::map<int64_t, Document> jobs;
    int64_t wanted = query.limit, before = 0, more = 0;
    do {
      const Document page = Get(Target(query, std::min(wanted, kMaxPage), before));
      more = page.at("more");
      const size_t known = jobs.size();
      for (const Document& job : page.at("jobs")) {
        const int64_t id = job.at("id");
        jobs[id] = job;
        if (job.at("ended").is_null()) continue;
        before = before == 0 ? id : std::min(before, id);
        --wanted;
      }
      if (jobs.size() == known) break;
    } while (wanted > 0 && more > 0);
    Document all = {{"jobs", Document::array()}, {"more", more}};
    for (auto& [id, job] : jobs) all["jobs"].push_back(std::move(job));
    return all;
  }

  Document ShowJob(const std::string& job) override {
    return Get(fmt::format("/v1/jobs/{}", NumberOf(job)));
  }

  // A daemon of an earlier version tells more.
  Document StateOfJob(const std::string& job) override {
    return Get(fmt::format("/v1/jobs/{}?brief=1", NumberOf(job)));
  }

  Submitted Submit(const Submission& submission) override {
    const Document answer = Post("/v1/jobs", RequestOf(submission));
    for (const Document& warning : answer.value("warnings", Document::array()))
      LogWarning("{}", warning.get<std::string>());
    const int64_t id = answer.at("id");
    return {.job = std::to_string(id), .id = id, .name = answer.at("name")};
  }

  JobText JobAgain(const std::string& job) override {
    const Document shown = ShowJob(job);
    const std::string name = fmt::format("job {}", job);
    if (shown.at("spec").is_null())
      Fail(ErrorCode::kNoPermission, "{} belongs to another user: only its owner can run it again",
           name);
    return {.yaml = shown.at("spec"), .source = name};
  }

  std::string ActOn(const std::string& job, JobAction action) override {
    return Post(fmt::format("/v1/jobs/{}/{}", NumberOf(job), WordOf(action)), "{}")
        .value("state", "");
  }

  Document ChangeJob(const std::string& job, const spec::JobChange& change) override {
    const Document body = {
        {"priority", change.priority}, {"queue", change.queue}, {"timeout", change.timeout}};
    Document answer = Post(fmt::format("/v1/jobs/{}/update", NumberOf(job)),
                           body.dump(-1, ' ', false, Document::error_handler_t::replace));
    answer["note"] = nullptr;
    return answer;
  }

  void ReadLog(const std::string& job, const LogQuery& query,
               const std::function<void(std::string_view)>& take) override {
    const std::string target = fmt::format("/v1/jobs/{}/logs?", NumberOf(job));
    if (query.follow)
      return FollowOutput(
          {.stream = [&](const std::string& wanted,
                         const auto& take_frames) { client_.Stream(target + wanted, take_frames); },
           .waiting = SystemWaiting()},
          job, query, take);
    std::string wanted = fmt::format("worker={}", query.worker);
    if (query.attempt >= 0) wanted += fmt::format("&attempt={}", query.attempt);
    if (query.tail >= 0) wanted += fmt::format("&tail={}", query.tail);
    client_.Stream(target + wanted, take);
  }

  Document ListNodes() override { return Get("/v1/nodes"); }

  std::string ChangeNode(const std::string& node, NodeAction action,
                         double notice_seconds) override {
    Document body = Document::object();
    if (action == NodeAction::kDrain)
      body["notice_seconds"] = notice_seconds < 0 ? Document() : Document(notice_seconds);
    const Document answer =
        Post(fmt::format("/v1/nodes/{}/{}", client::EscapeUrl(node), WordOf(action)), body.dump());
    if (answer.at("done").get<bool>()) return "";
    // A daemon of an earlier version says no more.
    return answer.value("waits_until", "its old workers have ended");
  }

  Document Status() override {
    Document status = Get("/v1/status");
    status["socket"] = client_.socket();
    return status;
  }

  Document Usage(const UsageQuery& query) override {
    if (!query.from && !query.to) return Get("/v1/usage");
    std::string target = fmt::format("/v1/usage?from={}", query.from.value_or(0));
    if (query.to) target += fmt::format("&to={}", *query.to);
    const Document usage = Get(target);
    if (!usage.contains("from"))
      Fail(ErrorCode::kUnavailable,
           "the daemon is of an earlier version and does not sum usage by date: start it again "
           "(`renzan cluster down`, `renzan cluster up`)");
    return usage;
  }

  void OverrideQuota(const std::string& user, int64_t max_gpus, double seconds) override {
    const Document body = {{"max_gpus", max_gpus}, {"for_seconds", seconds}};
    Post(fmt::format("/v1/users/{}/override", client::EscapeUrl(user)), body.dump());
  }

  View Observe() override {
    const Document status = Get("/v1/status");
    const spec::Submitter submitter = SubmitterOf(status);
    return {.snapshot = spec::SnapshotFromJson(client_.Get("/v1/snapshot")),
            .scheduling = SchedulingOf(status),
            .worker_classes = WorkerClassesOf(status),
            .user = user_,
            .submitter = submitter,
            .operates = submitter.administrator};
  }

  Job Imagine(const Submission& submission, const View& view, Snapshot& snapshot) override {
    const JobText& text = submission.job;
    spec::JobSpec spec = spec::ReadJobSpec(text.yaml, text.source, text.overrides);
    spec::RoundUpToClass(view.worker_classes, text.source, spec);
    spec::CheckSubmission(snapshot, spec, view.submitter);
    Job job = spec::MakeJob(snapshot, spec, view.user, 0, snapshot.now);
    const int64_t gpus = snapshot.worker_requests[job.request].per_worker.gpu() * job.max_workers;
    const Document traits = {
        {"queue", spec.queue}, {"name", spec.name}, {"size", gpus > 0 ? gpus : job.max_workers}};
    job.run_time = Post("/v1/run-time", traits.dump()).at("quantiles_ms");
    return job;
  }

  // Only the daemon can see how much the jobs would have to save.
  Document PlanChallenge(const Submission& submission) override {
    return Post("/v1/challenge/plan",
                RequestOf({.job = submission.job, .directory = submission.directory}));
  }

 private:
  Document Get(const std::string& target) { return Document::parse(client_.Get(target)); }
  Document Post(const std::string& target, const std::string& body) {
    return Document::parse(client_.Post(target, body));
  }

  client::Client client_;
  const std::string user_;
};

}  // namespace

std::unique_ptr<Backend> MakeDaemonBackend(client::Endpoint endpoint, std::string user) {
  return std::make_unique<DaemonBackend>(std::move(endpoint), std::move(user));
}

}  // namespace renzan::cluster
