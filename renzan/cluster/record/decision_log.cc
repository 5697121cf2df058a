#include "renzan/cluster/record/decision_log.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/cluster/record/causes.h"

namespace renzan::cluster::record {

std::string DecisionLog::Lines(const CycleView& cycle) {
  std::map<JobId, WaitReason> waits;
  bool news = Decides(cycle.snapshot, cycle.decisions);
  for (const Wait& wait : cycle.decisions.waits) waits[wait.job] = wait.reason;
  const auto is_news = [&](const Wait& wait) {
    const auto told = told_.find(wait.job);
    return told == told_.end() || told->second != wait.reason;
  };
  for (const Wait& wait : cycle.decisions.waits) news = news || is_news(wait);
  std::string lines;
  if (news)
    for (const nlohmann::ordered_json& decision : DecisionsWithCauses(cycle, is_news))
      lines += LineOf(decision) + "\n";
  told_ = std::move(waits);
  return lines;
}

}  // namespace renzan::cluster::record
