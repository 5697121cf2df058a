#include "renzan/cluster/backend/explain_job.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/cluster/core/engine/record_state.h"
#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/spec/cluster_config.h"

namespace renzan::cluster {
namespace {

std::string TimeAt(const Document& unix_ms) {
  return FormatLocal(unix_ms.is_number() ? unix_ms.get<double>() / 1000 : 0);
}

std::string WhereItIs(const Document& job) {
  const std::string state = job.at("state"), message = job.value("message", "");
  if (!job.at("ended").is_null())
    return fmt::format("it ended ({}) at {}{}{}", state, TimeAt(job.at("ended")),
                       message.empty() ? "" : ": ", message);
  if (state == NameOf(RecordState::kCollecting))
    return "its processes have ended; what they left behind is being copied";
  const std::string nodes =
      fmt::format("{}", fmt::join(job.at("nodes").get<std::vector<std::string>>(), ", "));
  if (state == NameOf(RecordState::kRunning) && !job.at("attempts_list").empty())
    return fmt::format("it has been running since {} on {}",
                       TimeAt(job.at("attempts_list").back().at("started")), nodes);
  return fmt::format("it is {}, on {}", state, nodes);
}

// Nothing if the caller may not see the whole cluster.
std::optional<View> TryToObserve(Backend& backend) {
  try {
    return backend.Observe();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNoPermission) throw;
    return std::nullopt;
  }
}

// A note for a job that does not save when stopped and runs on a node that is being drained.
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

// What the job's user could submit instead.
SubmissionRules RulesFor(const Document& job, const Job& waiting, const View& view) {
  SubmissionRules rules{.operates = view.operates};
  if (view.most_priority)
    rules.max_priority = static_cast<int>(view.most_priority(waiting));
  else if (job.contains("max_priority"))  // null: its queue is gone
    rules.max_priority = job.at("max_priority").is_number() ? job.at("max_priority").get<int>()
                                                            : std::numeric_limits<int>::min();
  if (!view.worker_classes.empty())
    rules.round_up = [&view](const Resources& worker) {
      return spec::RoundedUp(view.snapshot, view.worker_classes, worker);
    };
  return rules;
}

}  // namespace

Document ExplainJob(Backend& backend, const std::string& name) {
  const Document job = backend.ShowJob(name);
  const bool pending = job.at("state") == NameOf(RecordState::kPending);
  Document out = {{"id", job.at("id")}, {"state", job.at("state")}};
  out["warning"] = job.value("warning", Document());
  const std::optional<View> view = TryToObserve(backend);
  const JobId id = job.at("id").is_null() ? 0 : job.at("id").get<JobId>();
  if (!pending) {
    out["why"] = WhereItIs(job) + (view ? DrainNote(view->snapshot, id) : "");
    return out;
  }
  out["why"] = job.at("reason");
  if (!view) {
    out["note"] =
        "only what the controller says: simulating what would start requires the right to list "
        "nodes, queues, and all namespaces' pods and GangJobs";
    return out;
  }
  const Job* const waiting = view->snapshot.Find(id);
  if (waiting == nullptr || waiting->state != JobState::kPending) {
    out["note"] = "it is changing: ask again";
    return out;
  }
  const Explanation explanation =
      Explain(view->snapshot, id,
              {.scheduling = view->scheduling, .rules = RulesFor(job, *waiting, *view)});
  out["reason"] = NameOf(explanation.reason);
  out["why"] = explanation.why;
  out["would_start_with"] = explanation.would_start_with;
  const auto when = [](const std::optional<TimeMs>& time) {
    return time ? Document(*time) : Document();
  };
  out["estimated_start"] = when(explanation.estimated_start);
  out["estimated_start_p90"] = when(explanation.estimated_start_p90);
  out["estimate_rests_on"] = explanation.estimate_rests_on;
  out["queue_position"] = explanation.queue_position;
  if (!explanation.ahead.empty()) out["ahead"] = explanation.ahead;
  return out;
}

}  // namespace renzan::cluster
