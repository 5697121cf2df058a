#include "renzan/cluster/local/server/api.h"

#include <charconv>
#include <exception>
#include <nlohmann/json.hpp>

#include "renzan/base/log.h"
#include "renzan/cluster/local/server/api_json.h"
#include "renzan/cluster/local/supervisor/job_user.h"

namespace renzan::cluster::local {
namespace {

using Handler = ServerAnswer (*)(const ApiContext&, const ApiRequest&);

struct Route {
  const char* method;
  std::vector<std::string> path;  // "*": anything
  Handler handler;
};

const std::vector<Route>& Routes() {
  static const std::vector<Route> routes = {
      {"GET", {"v1", "status"}, ClusterStatus},
      {"GET", {"v1", "usage"}, ClusterUsage},
      {"GET", {"v1", "snapshot"}, ClusterSnapshot},
      {"POST", {"v1", "shutdown"}, ShutDown},
      {"POST", {"v1", "jobs"}, SubmitJob},
      {"POST", {"v1", "challenge", "plan"}, PlanChallenge},
      {"POST", {"v1", "run-time"}, PredictRunTime},
      {"GET", {"v1", "jobs"}, ListJobs},
      {"GET", {"v1", "jobs", "*"}, ShowJob},
      {"GET", {"v1", "jobs", "*", "logs"}, JobLogs},
      {"POST", {"v1", "jobs", "*", "cancel"}, ChangeJob},
      {"POST", {"v1", "jobs", "*", "preempt"}, ChangeJob},
      {"POST", {"v1", "jobs", "*", "checkpoint"}, ChangeJob},
      {"POST", {"v1", "jobs", "*", "hold"}, ChangeJob},
      {"POST", {"v1", "jobs", "*", "release"}, ChangeJob},
      {"POST", {"v1", "jobs", "*", "update"}, UpdateJob},
      {"GET", {"v1", "nodes"}, ListNodes},
      {"POST", {"v1", "nodes", "*", "cordon"}, ChangeNode},
      {"POST", {"v1", "nodes", "*", "drain"}, ChangeNode},
      {"POST", {"v1", "nodes", "*", "fail"}, ChangeNode},
      {"POST", {"v1", "nodes", "*", "restore"}, ChangeNode},
      {"POST", {"v1", "users", "*", "override"}, OverrideUserQuota},
      {"GET", {"v1", "tokens"}, ListTokens},
      {"POST", {"v1", "tokens"}, CreateToken},
      {"POST", {"v1", "tokens", "*", "revoke"}, RevokeToken},
  };
  return routes;
}

bool Matches(const Route& route, const ApiRequest& request) {
  if (route.method != request.method || route.path.size() != request.path.size()) return false;
  for (size_t i = 0; i < route.path.size(); ++i)
    if (route.path[i] != "*" && route.path[i] != request.path[i]) return false;
  return true;
}

unsigned HttpStatus(ErrorCode code) {
  switch (code) {
    case ErrorCode::kConfig:
      return 400;
    case ErrorCode::kNoPermission:
      return 403;
    case ErrorCode::kNoInput:
      return 404;
    case ErrorCode::kUsage:
      return 409;
    case ErrorCode::kUnavailable:
      return 503;
    case ErrorCode::kIo:
      return 507;
    default:
      return 500;
  }
}

}  // namespace

ServerAnswer ErrorResponse(unsigned status, ErrorCode code, const std::string& message) {
  const Json body = {{"error", {{"code", static_cast<int>(code)}, {"message", message}}}};
  // A message may quote input that is not UTF-8.
  return {.status = status, .text = BodyOf(body)};
}

ServerAnswer ErrorResponse(const Error& error) {
  const bool malformed = dynamic_cast<const BadRequest*>(&error) != nullptr;
  return ErrorResponse(malformed ? 400 : HttpStatus(error.code()), error.code(), error.what());
}

ServerAnswer Answer(const ApiContext& context, const ApiRequest& request) {
  try {
    for (const Route& route : Routes())
      if (Matches(route, request)) return route.handler(context, request);
    return ErrorResponse(404, ErrorCode::kNoInput,
                         "unknown request: is the daemon of another version than the client?");
  } catch (const Error& error) {
    return ErrorResponse(error);
  } catch (const std::exception& error) {
    LogError("{} failed: {}", request.method, error.what());
    return ErrorResponse(500, ErrorCode::kSoftware, error.what());
  }
}

int64_t NumberIn(const ApiRequest& request, const char* key, int64_t otherwise) {
  const auto at = request.query.find(key);
  if (at == request.query.end()) return otherwise;
  const std::string& text = at->second;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    throw BadRequest(fmt::format("{} must be a nonnegative integer, not \"{}\"", key, text));
  return value;
}

Caller WithGroups(const ApiContext& context, Caller caller) {
  if (context.needs_groups) caller.groups = GroupNames(caller.uid, caller.gid);
  return caller;
}

int64_t NumberInPath(const ApiRequest& request, const char* what) {
  const std::string& text = request.path.at(2);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number <= 0)
    throw BadRequest(fmt::format("{} must be a number such as 12", what));
  return number;
}

JobId JobInPath(const ApiRequest& request) { return NumberInPath(request, "a job id"); }

}  // namespace renzan::cluster::local
