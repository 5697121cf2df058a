#include <nlohmann/json.hpp>

#include "renzan/base/clock.h"
#include "renzan/cluster/core/explain.h"
#include "renzan/cluster/local/api.h"

namespace renzan::cluster::local {
namespace {

using Json = nlohmann::ordered_json;

std::string WhyOf(const JobView& view) {
  const JobRecord& job = view.record;
  std::string nodes;
  for (const NodeShare& share : view.placement) nodes += (nodes.empty() ? "" : ", ") + share.node;
  const auto at = [](TimeMs time) { return FormatUtc(static_cast<double>(time) / 1000); };
  if (HasEnded(job.state))
    return fmt::format("it has ended ({}) at {}{}{}", NameOf(job.state), at(job.ended.value_or(0)),
                       job.message.empty() ? "" : ": ", job.message);
  if (job.state == RecordState::kRunning)
    return fmt::format("it runs since {} on {}", at(view.scheduled->started), nodes);
  if (job.state == RecordState::kCollecting)
    return "its processes have ended; its artifacts are being copied";
  return fmt::format("it is {}, on {}", NameOf(job.state), nodes);
}

}  // namespace

ApiResponse ExplainJob(const ApiContext& context, const ApiRequest& request) {
  const JobId id = JobInPath(request);
  JobView view;
  Snapshot snapshot;
  context.loop.Run([&](Controller& controller) {
    view = controller.View(id);
    if (view.record.state == RecordState::kPending) snapshot = controller.snapshot();
  });
  Json body = {{"id", id}, {"state", NameOf(view.record.state)}};
  if (view.record.state == RecordState::kPending) {
    // It asks the scheduler many times what would happen if, on a copy.
    const Explanation explanation = Explain(snapshot, id, context.scheduling);
    body["reason"] = NameOf(explanation.reason);
    body["why"] = explanation.why;
    body["would_start_with"] = explanation.would_start_with;
    body["estimated_start"] =
        explanation.estimated_start ? Json(*explanation.estimated_start) : Json();
    body["estimate_rests_on"] = explanation.estimate_rests_on;
    body["place_in_line"] = explanation.place_in_line;
  } else {
    body["why"] = WhyOf(view);
  }
  body["warning"] = view.warning;
  return {.body = body.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"};
}

}  // namespace renzan::cluster::local
