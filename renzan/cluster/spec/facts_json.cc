#include "renzan/cluster/spec/facts_json.h"

#include <nlohmann/json.hpp>

#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::spec {

using nlohmann::json;

json PlacementToJson(const NamedPlacement& placement) {
  json list = json::array();
  for (const NodeShare& share : placement) {
    list.push_back({{"node", share.node}, {"workers", share.workers}});
    if (!share.devices.empty()) list.back()["devices"] = share.devices;
  }
  return list;
}

NamedPlacement PlacementFromJson(const json& list) {
  NamedPlacement placement;
  for (const json& share : list) {
    placement.push_back({TextAt(share, {"node"}), static_cast<int>(NumberAt(share, {"workers"}))});
    for (const json& devices : At(share, {"devices"})) {
      std::vector<int>& worker = placement.back().devices.emplace_back();
      for (const json& device : devices)
        if (device.is_number_integer()) worker.push_back(device.get<int>());
    }
  }
  return placement;
}

json FactsToJson(const JobFacts& job, const AttemptFacts& attempt) {
  json out = {{"phase", NameOf(job.state)},
              {"attempts", job.attempts},
              {"placement", PlacementToJson(attempt.placement)}};
  // Some servers take an empty text for null and reject it.
  if (!job.message.empty()) out["message"] = job.message;
  if (!attempt.stop_reason.empty()) out["stopReason"] = attempt.stop_reason;
  if (!attempt.target.empty()) out["target"] = PlacementToJson(attempt.target);
  if (job.exit_code) out["exitCode"] = *job.exit_code;
  json& facts = out["facts"] = {{"preemptions", job.preemptions}, {"failures", job.failures}};
  const auto put = [&](const char* key, int64_t number) {
    if (number != 0) facts[key] = number;
  };
  put("startedMs", attempt.started);
  put("stoppingFor", attempt.stopping_for);
  put("waitingSinceMs", job.waiting_since);
  put("eligibleAtMs", job.eligible_at);
  put("lastResizeMs", job.last_resize);
  put("runMs", job.run_ms);
  put("attainedWorkerMs", job.attained_worker_ms);
  put("reservationYields", job.reservation_yields);
  put("requeues", job.requeues);
  if (attempt.backfilled) facts["backfilled"] = true;
  if (!job.failed_on.empty()) facts["failedOn"] = job.failed_on;
  if (job.run_time.back() > 0) facts["runTimeMs"] = job.run_time;
  if (job.first_started) facts["firstStartedMs"] = *job.first_started;
  if (job.ended) facts["endedMs"] = *job.ended;
  return out;
}

bool FactsFromJson(const json& object, JobFacts& job, AttemptFacts& attempt) {
  const auto state = RecordStateNamed(TextAt(object, {"phase"}, NameOf(RecordState::kPending)));
  if (!state) return false;
  job.state = *state;
  job.attempts = static_cast<int>(NumberAt(object, {"attempts"}));
  attempt.placement = PlacementFromJson(At(object, {"placement"}));
  attempt.target = PlacementFromJson(At(object, {"target"}));
  job.message = TextAt(object, {"message"});
  attempt.stop_reason = TextAt(object, {"stopReason"});
  if (const json& code = At(object, {"exitCode"}); code.is_number_integer())
    job.exit_code = code.get<int>();
  const json& facts = At(object, {"facts"});
  attempt.started = NumberAt(facts, {"startedMs"});
  attempt.backfilled = IsTrueAt(facts, {"backfilled"});
  attempt.stopping_for = NumberAt(facts, {"stoppingFor"});
  job.waiting_since = NumberAt(facts, {"waitingSinceMs"});
  job.eligible_at = NumberAt(facts, {"eligibleAtMs"});
  job.last_resize = NumberAt(facts, {"lastResizeMs"});
  job.run_ms = NumberAt(facts, {"runMs"});
  job.attained_worker_ms = NumberAt(facts, {"attainedWorkerMs"});
  job.preemptions = static_cast<int>(NumberAt(facts, {"preemptions"}));
  job.reservation_yields = static_cast<int>(NumberAt(facts, {"reservationYields"}));
  job.failures = static_cast<int>(NumberAt(facts, {"failures"}));
  job.requeues = static_cast<int>(NumberAt(facts, {"requeues"}));
  for (const json& node : At(facts, {"failedOn"}))
    if (node.is_string()) job.failed_on.push_back(node.get<std::string>());
  if (const json& times = At(facts, {"runTimeMs"});
      times.is_array() && times.size() == job.run_time.size())
    for (size_t at = 0; at < times.size(); ++at)
      if (times[at].is_number_integer()) job.run_time[at] = times[at].get<TimeMs>();
  job.first_started = OptionalNumberAt(facts, {"firstStartedMs"});
  job.ended = OptionalNumberAt(facts, {"endedMs"});
  return true;
}

}  // namespace renzan::cluster::spec
