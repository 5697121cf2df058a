#include "renzan/cluster/spec/inherited.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/base/utf8.h"
#include "renzan/cluster/spec/job_spec.h"

namespace renzan::cluster::spec {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostNice = 19;

// What a shell says about itself.
constexpr std::array<std::string_view, 4> kOfShell = {"_", "OLDPWD", "PWD", "SHLVL"};
// What the job system says about the job that submits this one, besides IsContractVariable().
constexpr std::array<std::string_view, 7> kOfJob = {
    "LOCAL_WORLD_SIZE", "RENZAN_ATTEMPT", "RENZAN_ATTEMPT_DIR", "RENZAN_CPUS",
    "RENZAN_JOB_ID",    "RENZAN_NODE",    "RENZAN_WORKER"};

bool IsOfShell(const std::string& name) {
  return std::find(kOfShell.begin(), kOfShell.end(), name) != kOfShell.end();
}

bool IsOfJob(const std::string& name) {
  return IsContractVariable(name) || std::find(kOfJob.begin(), kOfJob.end(), name) != kOfJob.end();
}

Json LimitToJson(rlim_t limit) { return limit == RLIM_INFINITY ? Json() : Json(limit); }
rlim_t LimitFromJson(const Json& json) {
  return json.is_null() ? RLIM_INFINITY : json.get<rlim_t>();
}

// A NUL byte would cut off the variable in exec().
bool IsVariable(const std::string& name, const std::string& value) {
  return !name.empty() && name.find('=') == std::string::npos &&
         (name + value).find('\0') == std::string::npos;
}

}  // namespace

std::map<std::string, std::string> Exported(const std::string& exported,
                                            const std::map<std::string, std::string>& environment,
                                            std::vector<std::string>& not_utf8) {
  if (exported == kExportNone) return {};
  std::map<std::string, std::string> selected;
  if (exported.empty() || exported == kExportAll) {
    for (const auto& [name, value] : environment) {
      if (IsOfShell(name) || IsOfJob(name)) continue;
      if (IsUtf8(name) && IsUtf8(value))
        selected[name] = value;
      else
        not_utf8.push_back(name);
    }
    return selected;
  }
  for (const std::string& name : ExportedNames(exported)) {
    if (IsOfJob(name))
      Fail(ErrorCode::kUsage, "export: the job system sets {} itself: leave it out", name);
    const auto at = environment.find(name);
    if (at == environment.end())
      Fail(ErrorCode::kUsage, "export: {} is not set here: set it, or leave it out", name);
    if (!IsUtf8(at->second))
      Fail(ErrorCode::kUsage, "export: the value of {} is not UTF-8: leave it out", name);
    selected.insert(*at);
  }
  return selected;
}

std::string InheritedToJson(const Inherited& inherited) {
  Json limits = Json::object();
  for (const auto& [name, limit] : inherited.limits)
    limits[name] = {LimitToJson(limit.soft), LimitToJson(limit.hard)};
  const Json json = {{"environment", inherited.environment},
                     {"umask", inherited.umask},
                     {"limits", limits},
                     {"niceness", inherited.niceness}};
  return json.dump();
}

Inherited InheritedFromJson(std::string_view text) {
  Inherited inherited;
  try {
    const Json json = Json::parse(text);
    inherited.environment = json.at("environment").get<std::map<std::string, std::string>>();
    inherited.umask = json.at("umask").get<mode_t>() & 0777;
    inherited.niceness = std::clamp(json.at("niceness").get<int>(), 0, kMostNice);
    for (const auto& [name, limit] : json.at("limits").items())
      inherited.limits[name] = {.soft = LimitFromJson(limit.at(0)),
                                .hard = LimitFromJson(limit.at(1))};
  } catch (const Json::exception&) {
    // The parser's message may quote a secret.
    Fail(ErrorCode::kData, "what the job inherits is not valid JSON of its form");
  }
  for (const auto& [name, value] : inherited.environment)
    if (!IsVariable(name, value))
      Fail(ErrorCode::kData, "what the job inherits has an invalid variable");
  return inherited;
}

}  // namespace renzan::cluster::spec
