#include "renzan/cluster/record/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "renzan/cluster/core/validate/invariants.h"
#include "renzan/cluster/record/cycle_json.h"

namespace renzan::cluster::record {
namespace {

using Json = nlohmann::ordered_json;

// The first difference between `recorded` and `now`, which are at `where`; empty if there is none.
std::string FirstDifference(const Json& recorded, const Json& now, const std::string& where) {
  if (recorded == now) return "";
  if (recorded.is_object() && now.is_object())
    for (const auto& [key, value] : recorded.items())
      if (std::string difference =
              FirstDifference(value, now.at(key), where.empty() ? key : where + "." + key);
          !difference.empty())
        return difference;
  if (recorded.is_array() && now.is_array()) {
    const size_t both = std::min(recorded.size(), now.size());
    for (size_t at = 0; at < both; ++at)
      if (std::string difference =
              FirstDifference(recorded[at], now[at], fmt::format("{}[{}]", where, at));
          !difference.empty())
        return difference;
    if (recorded.size() > both)
      return fmt::format("{}[{}]: {} was recorded, and now there is none", where, both,
                         recorded[both].dump());
    return fmt::format("{}[{}]: none was recorded, and now there is {}", where, both,
                       now[both].dump());
  }
  return fmt::format("{}: {} was recorded, and now it is {}", where, recorded.dump(), now.dump());
}

}  // namespace

std::string DifferenceOnReplay(const Cycle& cycle) {
  const Validated now = Validate(cycle.snapshot, Schedule(cycle.snapshot, cycle.options));
  return FirstDifference(Json::parse(DecisionsToJson(cycle.decisions)),
                         Json::parse(DecisionsToJson(now.decisions)), "");
}

}  // namespace renzan::cluster::record
