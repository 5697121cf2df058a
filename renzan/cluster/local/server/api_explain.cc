#include <poll.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "renzan/base/clock.h"
#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/local/server/api_json.h"
#include "renzan/cluster/spec/cluster_config.h"

namespace renzan::cluster::local {
namespace {

std::string WhyOf(const JobView& view) {
  const JobRecord& job = view.record;
  std::string nodes;
  for (const NodeShare& share : view.placement) nodes += (nodes.empty() ? "" : ", ") + share.node;
  const auto at = [](TimeMs time) { return FormatUtc(static_cast<double>(time) / 1000); };
  if (HasEnded(job.state))
    return fmt::format("it ended ({}) at {}{}{}", NameOf(job.state), at(job.ended.value_or(0)),
                       job.message.empty() ? "" : ": ", job.message);
  if (job.state == RecordState::kRunning)
    return fmt::format("it has been running since {} on {}", at(view.scheduled->started), nodes);
  if (job.state == RecordState::kCollecting)
    return "its processes have ended; its artifacts are being copied";
  return fmt::format("it is {}, on {}", NameOf(job.state), nodes);
}

// True once the client has disconnected or the server must end.
std::function<bool()> ClientGone(const ApiContext& context, const ApiRequest& request) {
  return [client = request.client_fd, stop = context.stop_fd] {
    pollfd fds[] = {{client, POLLRDHUP, 0}, {stop, POLLIN, 0}};
    return ::poll(fds, 2, 0) > 0;
  };
}

// The rules for submissions of the job's user.
SubmissionRules RulesFor(const ApiContext& context, const JobRecord& job,
                         const Snapshot& snapshot) {
  SubmissionRules rules;
  if (job.uid != 0 && job.uid != context.uid) rules.max_priority = context.max_priority;
  if (!context.worker_classes.empty())
    rules.round_up = [&context, &snapshot](const Resources& worker) {
      return RoundedUp(snapshot, context.worker_classes, worker);
    };
  return rules;
}

// For a job that does not save when stopped and runs on a node that is being drained.
std::string DrainNote(const Snapshot& snapshot, JobId id) {
  const Job* job = snapshot.Find(id);
  if (job == nullptr || SavesWhenStopped(*job)) return "";
  for (const Placed& placed : job->placement)
    if (const Node& node = snapshot.nodes[placed.node];
        node.state == NodeState::kDraining && node.until == kNever)
      return fmt::format(
          "; {} is being drained, but the job may finish there, because stopping it would lose "
          "work",
          node.name);
  return "";
}

}  // namespace

ApiResponse ExplainJob(const ApiContext& context, const ApiRequest& request) {
  const JobId id = JobInPath(request);
  const std::function<bool()> gone = ClientGone(context, request);
  const ExplainGate::Slot slot = context.explain_gate->Enter(request.caller.uid, gone);
  if (!slot) Fail(ErrorCode::kUnavailable, "cancelled");
  JobView view;
  Snapshot snapshot;
  std::string drain_note;
  context.loop.Run([&](Controller& controller) {
    view = controller.View(id);
    if (view.record.state == RecordState::kPending) snapshot = controller.snapshot();
    drain_note = DrainNote(controller.snapshot(), id);
  });
  Json body = {{"id", id}, {"state", NameOf(view.record.state)}};
  if (view.record.state == RecordState::kPending) {
    // Simulates many changes on a copy of the snapshot.
    const Explanation explanation = Explain(snapshot, id,
                                            {.scheduling = context.scheduling,
                                             .rules = RulesFor(context, view.record, snapshot),
                                             .cancelled = gone});
    body["reason"] = NameOf(explanation.reason);
    body["why"] = explanation.why;
    body["would_start_with"] = explanation.would_start_with;
    body["estimated_start"] =
        explanation.estimated_start ? Json(*explanation.estimated_start) : Json();
    body["estimate_rests_on"] = explanation.estimate_rests_on;
    body["queue_position"] = explanation.queue_position;
  } else {
    body["why"] = WhyOf(view) + drain_note;
  }
  body["warning"] = view.warning;
  return {.body = BodyOf(body)};
}

// Of a job that the caller would submit.
ApiResponse PredictRunTime(const ApiContext& context, const ApiRequest& request) {
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
  return {.body = BodyOf({{"quantiles_ms", quantiles}})};
}

}  // namespace renzan::cluster::local
