#include "renzan/cluster/contract/run_status.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace renzan::cluster {
namespace {

using Json = nlohmann::ordered_json;

// Longer estimates are ignored.
constexpr double kLongestEta = 10.0 * 365 * 86400;

// A finite number from 0 to `max`; nothing for anything else.
std::optional<double> Number(const Json& object, const char* key, double max) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_number()) return std::nullopt;
  const double value = at->get<double>();
  if (!std::isfinite(value) || value < 0 || value > max) return std::nullopt;
  return value;
}

std::optional<TimeMs> Time(const Json& object, const char* key, TimeMs now) {
  const auto seconds = Number(object, key, 1e12);
  if (!seconds) return std::nullopt;
  return std::min(now, static_cast<TimeMs>(*seconds * 1000));
}

}  // namespace

std::optional<RunProgress> ParseRunStatus(std::string_view text, TimeMs now) {
  // A status has two levels; deep nesting would overflow the stack.
  int depth = 0;
  const Json::parser_callback_t shallow = [&](int level, Json::parse_event_t, Json&) {
    depth = std::max(depth, level);
    return level < 4;
  };
  const Json status = Json::parse(text, shallow, false);
  if (!status.is_object() || depth >= 4) return std::nullopt;
  RunProgress progress;
  if (const auto state = status.find("state"); state != status.end() && state->is_string())
    progress.state = state->get<std::string>();
  progress.step = static_cast<int64_t>(Number(status, "step", 1e15).value_or(0));
  progress.steps = static_cast<int64_t>(Number(status, "steps", 1e15).value_or(0));
  progress.samples_per_second = Number(status, "samples_per_second", 1e15).value_or(0);
  progress.eta_seconds = Number(status, "eta_seconds", kLongestEta);
  progress.updated = Time(status, "updated", now).value_or(now);
  progress.working_since = Time(status, "working_since", now);
  const auto checkpoint = status.find("last_checkpoint");
  if (checkpoint != status.end() && checkpoint->is_object())
    progress.last_checkpoint = Time(*checkpoint, "time", now);
  return progress;
}

}  // namespace renzan::cluster
