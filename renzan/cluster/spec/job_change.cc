#include "renzan/cluster/spec/job_change.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace renzan::cluster::spec {
namespace {

// As JSON, which is YAML too: any text becomes a YAML string.
std::string AsYaml(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

JobSpec WithChange(std::string_view yaml, const std::string& name, const JobChange& change) {
  std::vector<std::string> overrides;
  if (!change.priority.empty()) overrides.push_back("priority=" + change.priority);
  if (!change.queue.empty()) overrides.push_back("queue=" + AsYaml(change.queue));
  if (!change.timeout.empty()) overrides.push_back("timeout=" + AsYaml(change.timeout));
  return ReadJobSpec(yaml, name, overrides);
}

std::string DifferenceText(const JobSpec& before, const JobSpec& after) {
  std::vector<std::string> changes;
  const auto add = [&](const char* key, const auto& was, const auto& is) {
    if (was != is) changes.push_back(fmt::format("{} {} -> {}", key, was, is));
  };
  add("priority", before.priority, after.priority);
  add("queue", before.queue, after.queue);
  if (before.timeout_ms() != after.timeout_ms()) add("timeout", before.timeout, after.timeout);
  return fmt::format("{}", fmt::join(changes, ", "));
}

}  // namespace renzan::cluster::spec
