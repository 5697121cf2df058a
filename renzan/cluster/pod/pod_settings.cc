#include "renzan/cluster/pod/pod_settings.h"

#include <charconv>
#include <climits>
#include <cmath>
#include <string_view>

#include "renzan/base/error.h"

namespace renzan::cluster::pod {
namespace {

using Environment = std::vector<std::string>;

// The first value, as getenv() returns it. Empty: not set.
std::string ValueOf(const Environment& environment, const std::string& name) {
  for (const std::string& entry : environment)
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  return "";
}

template <typename T>
std::optional<T> NumberIn(const Environment& environment, const char* name, T least) {
  const std::string text = ValueOf(environment, name);
  if (text.empty()) return std::nullopt;
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool finite = std::isfinite(static_cast<double>(value));
  if (error != std::errc() || end != text.data() + text.size() || !finite || value < least)
    Fail(ErrorCode::kUsage, "environment variable {} is '{}', not a number of at least {}", name,
         text, least);
  return value;
}

}  // namespace

PodSettings ReadPodSettings(const std::vector<std::string>& environment) {
  PodSettings settings;
  settings.rank = NumberIn(environment, "RANK", 0).value_or(0);
  settings.world_size = NumberIn(environment, "WORLD_SIZE", 1).value_or(1);
  settings.master_addr = ValueOf(environment, "MASTER_ADDR");
  settings.grace_seconds = NumberIn(environment, "RENZAN_GRACE_SECONDS", 0.0);
  settings.run_dir = ValueOf(environment, "RENZAN_RUN_DIR");
  settings.attempt = NumberIn(environment, "RENZAN_ATTEMPT", 0).value_or(0);
  settings.upload_to = ValueOf(environment, "RENZAN_UPLOAD_TO");
  settings.artifacts = ValueOf(environment, "RENZAN_ARTIFACTS");
  if (std::string given = ValueOf(environment, "RENZAN_POD_INFO"); !given.empty())
    settings.pod_info = std::move(given);
  return settings;
}

std::string TerminationLogOf(const std::vector<std::string>& environment) {
  const std::string given = ValueOf(environment, "RENZAN_TERMINATION_LOG");
  return given.empty() ? "/dev/termination-log" : given;
}

void SetVariable(std::vector<std::string>& environment, const std::string& name,
                 const std::string& value) {
  std::erase_if(environment,
                [&](const std::string& entry) { return entry.starts_with(name + "="); });
  environment.push_back(name + "=" + value);
}

}  // namespace renzan::cluster::pod
