#include <algorithm>
#include <nlohmann/json.hpp>

#include "renzan/base/config/config.h"
#include "renzan/cluster/local/controller/job_policy.h"
#include "renzan/cluster/local/server/api_json.h"

namespace renzan::cluster::local {
namespace {

constexpr TimeMs kShownAfterEndMs = 3'600'000;

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json ProgressJson(const std::optional<RunProgress>& progress, TimeMs now) {
  if (!progress) return nullptr;
  Json out = {{"step", progress->step},
              {"steps", progress->steps},
              {"samples_per_second", progress->samples_per_second},
              {"eta_seconds", nullptr}};
  if (progress->eta_seconds)
    out["eta_seconds"] =
        std::max(0.0, *progress->eta_seconds - static_cast<double>(now - progress->updated) / 1000);
  return out;
}

Json JobJson(const JobView& view, TimeMs now) {
  const JobRecord& job = view.record;
  Json nodes = Json::array();
  int workers = 0;
  for (const NodeShare& share : view.placement) {
    nodes.push_back(share.node);
    workers += share.workers;
  }
  return {{"id", job.id},
          {"name", job.name},
          {"queue", job.queue},
          {"user", job.user},
          {"priority", job.priority},
          {"state", NameOf(job.state)},
          {"reason", view.reason.empty() ? Json() : Json(view.reason)},
          {"workers", workers},
          {"min_workers", job.min_workers},
          {"max_workers", job.max_workers},
          {"resources",
           {{"cpu", static_cast<double>(job.cpu_millis) / 1000},
            {"memory_mib", job.memory_mib},
            {"gpu", job.gpus}}},
          {"nodes", nodes},
          {"submitted", job.submitted},
          {"started", OrNull(job.first_started)},
          {"ended", OrNull(job.ended)},
          {"exit_code", OrNull(job.exit_code)},
          {"attempts", job.attempts},
          {"failures", job.failures},
          {"preemptions", job.preemptions},
          {"progress", ProgressJson(view.progress, now)}};
}

Json AttemptJson(const AttemptRecord& attempt, const JobRecord& job) {
  Json placement = Json::array();
  for (const NodeShare& share : attempt.placement)
    placement.push_back({{"node", share.node}, {"workers", share.workers}});
  return {{"number", attempt.number},
          {"state", attempt.ended ? "ended" : NameOf(job.state)},
          {"started", attempt.started},
          {"ended", OrNull(attempt.ended)},
          {"exit_code", OrNull(attempt.exit_code)},
          {"message", attempt.message},
          {"placement", placement}};
}

std::optional<std::string> QueryValue(const ApiRequest& request, const char* key) {
  const auto at = request.query.find(key);
  return at == request.query.end() ? std::nullopt : std::optional(at->second);
}

JobFilter FilterOf(const ApiRequest& request, TimeMs now) {
  const bool everything = QueryValue(request, "all").value_or("0") != "0";
  JobFilter filter;
  filter.ended.since = everything ? 0 : now - kShownAfterEndMs;
  filter.ended.queue = QueryValue(request, "queue");
  filter.ended.user = QueryValue(request, "user");
  if (const auto state = QueryValue(request, "state")) {
    filter.ended.state = RecordStateNamed(*state);
    if (!filter.ended.state) throw BadRequest("unknown state of a job: " + *state);
  }
  filter.ended.before = NumberIn(request, "before", kNever);
  filter.most_ended = static_cast<int>(
      std::min<int64_t>(NumberIn(request, "limit", kMaxEndedListed), kMaxEndedListed));
  return filter;
}

// While a queue that the configuration no longer has still has jobs, they can be listed.
void RequireQueue(const Snapshot& snapshot, const std::string& name) {
  std::vector<std::string> names;
  for (const Queue& queue : snapshot.queues) {
    if (queue.name == name) return;
    if (!queue.name.empty()) names.push_back(queue.name);
  }
  const std::string nearest = NearestName(name, names);
  Fail(ErrorCode::kNoInput, "there is no queue '{}': {}`renzan cluster status` lists them", name,
       nearest.empty() ? "" : "did you mean '" + nearest + "'? ");
}

// One that an earlier version accepted may no longer be valid.
spec::JobSpec SpecOf(const JobRecord& job) {
  try {
    return spec::ReadJobSpec(job.spec, fmt::format("job {}", job.id));
  } catch (const Error&) {
    return {};
  }
}

// The most that its user's jobs may have in its queue; null: there is no such queue any more.
Json MostPriorityOf(const JobRecord& job, const Caller& caller, Controller& controller) {
  const spec::Submitter user =
      controller.access().SubmitterOf({.uid = job.uid,
                                       .gid = job.gid,
                                       .name = job.user,
                                       .by_token = caller.by_token && caller.uid == job.uid});
  for (const Queue& queue : controller.snapshot().queues)
    if (queue.name == job.queue) return spec::MostPriority(queue.rights, user);
  return nullptr;
}

}  // namespace

ServerAnswer ListJobs(const ApiContext& context, const ApiRequest& request) {
  TimeMs now = 0;
  const JobList list = context.loop.Run([&](Controller& controller) {
    now = controller.Now();
    const JobFilter filter = FilterOf(request, now);
    JobList found = controller.List(filter);
    if (filter.ended.queue && found.jobs.empty() && found.more == 0)
      RequireQueue(controller.snapshot(), *filter.ended.queue);
    return found;
  });
  Json jobs = Json::array();
  for (const JobView& view : list.jobs) jobs.push_back(JobJson(view, now));
  return {.text = BodyOf({{"jobs", jobs}, {"more", list.more}})};
}

ServerAnswer ShowJob(const ApiContext& context, const ApiRequest& request) {
  const JobId id = JobInPath(request);
  if (NumberIn(request, "brief", 0) != 0) {
    const JobRecord job =
        context.loop.Run([&](Controller& controller) { return controller.Record(id); });
    return {.text = BodyOf({{"id", id},
                            {"state", NameOf(job.state)},
                            {"attempts", job.attempts},
                            {"exit_code", OrNull(job.exit_code)},
                            {"message", job.message}})};
  }
  const Json body = context.loop.Run([&](Controller& controller) {
    const JobView view = controller.View(id);
    const JobRecord& job = view.record;
    Json out = JobJson(view, controller.Now());
    // Environments contain secrets.
    const bool owner = controller.access().MayChange(job, request.caller);
    out["spec"] = owner && !job.spec.empty() ? Json(job.spec) : Json();  // empty: damaged
    const spec::JobSpec spec = SpecOf(job);
    out["timeout_ms"] = spec.timeout_ms() > 0 ? Json(spec.timeout_ms()) : Json();
    const std::string directory = controller.directories().Of(id);
    const Measured& measured = job.measured;
    out["checkpoint_ms"] = OrNull(measured.checkpoint_ms);
    out["killed_after_ms"] = OrNull(measured.killed_after_ms);
    out["restart_ms"] = OrNull(measured.restart_ms);
    out["warning"] = view.warning;
    out["max_priority"] = MostPriorityOf(job, request.caller, controller);
    out["run_dir"] = directory + "/run";
    out["checkpoint_dir"] = CheckpointDirectoryOf(spec, directory);
    out["artifacts_dir"] = directory + "/artifacts";
    out["manifest"] =
        owner && !job.manifest.empty() ? Json::parse(job.manifest, nullptr, false) : Json();
    out["message"] = job.message;
    out["attempts_list"] = Json::array();
    for (const AttemptRecord& attempt : controller.store().Attempts(id))
      out["attempts_list"].push_back(AttemptJson(attempt, job));
    out["events"] = Json::array();
    for (const EventRecord& event : controller.store().Events(id))
      out["events"].push_back({{"time", event.time}, {"kind", event.kind}, {"text", event.text}});
    const UsageRecord usage = controller.usage().Of(id);
    out["gpu_seconds"] = usage.gpu_seconds;
    out["cost"] = usage.cost;
    return out;
  });
  return {.text = BodyOf(body)};
}

ServerAnswer ChangeJob(const ApiContext& context, const ApiRequest& request) {
  const JobId id = JobInPath(request);
  const std::string& verb = request.path.at(3);
  const RecordState state = context.loop.Run([&](Controller& controller) {
    if (verb == "cancel") return controller.Cancel(id, request.caller);
    if (verb == "preempt") return controller.Preempt(id, request.caller);
    if (verb == "hold") return controller.Hold(id, request.caller);
    if (verb == "release") return controller.Release(id, request.caller);
    controller.Checkpoint(id, request.caller);
    return controller.View(id).record.state;
  });
  return {.text = BodyOf({{"state", NameOf(state)}})};
}

ServerAnswer UpdateJob(const ApiContext& context, const ApiRequest& request) {
  const JobId id = JobInPath(request);
  const Json body = ParseBody(request);
  spec::JobChange change;
  try {
    change = {.priority = body.value("priority", ""),
              .queue = body.value("queue", ""),
              .timeout = body.value("timeout", "")};
  } catch (const Json::exception&) {
    throw BadRequest("expected priority, queue and timeout as text");
  }
  const Caller caller = WithGroups(context, request.caller);
  const JobChanged changed = context.loop.Run(
      [&](Controller& controller) { return controller.Update(id, change, caller); });
  return {.text = BodyOf({{"state", NameOf(changed.state)}, {"changed", changed.what}})};
}

// Predicts for a job that the caller would submit.
ServerAnswer PredictRunTime(const ApiContext& context, const ApiRequest& request) {
  const Json body = ParseBody(request);
  JobTraits traits{.user = request.caller.name};
  try {
    traits.queue = body.at("queue").get<std::string>();
    traits.name = body.at("name").get<std::string>();
    if (!body.at("size").is_number_integer()) throw BadRequest("size must be an integer");
    traits.size = body.at("size").get<int64_t>();
  } catch (const Json::exception&) {
    throw BadRequest("expected queue, name and size");
  }
  const RunTimeQuantiles quantiles =
      context.loop.Run([&](Controller& controller) { return controller.PredictRunTime(traits); });
  return {.text = BodyOf({{"quantiles_ms", quantiles}})};
}

}  // namespace renzan::cluster::local
