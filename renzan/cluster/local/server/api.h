#pragma once

// The HTTP API without HTTP: requests and responses as plain values, and their handlers. JSON stays
// in the .cc files. Handlers run concurrently on the server's threads and access the controller
// through the loop's thread only.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/local/controller/controller.h"
#include "renzan/cluster/local/loop.h"
#include "renzan/cluster/local/server/log_stream.h"

namespace renzan::cluster::local {

struct ApiRequest {
  std::string method;             // "GET" or "POST"
  std::vector<std::string> path;  // "/v1/jobs/12": {"v1", "jobs", "12"}
  std::map<std::string, std::string> query;
  std::string body;
  Caller caller;
  int client_fd = -1;
};

struct ApiResponse {
  int status = 200;
  std::string body;  // JSON, unless `stream` is set
  std::unique_ptr<LogStream> stream;
  bool shut_down = false;  // after the response has been sent
};

class Tokens;

// Common to all requests.
struct ApiContext {
  Loop& loop;
  std::string state_dir;
  uid_t uid = 0;
  TimeMs started = 0;
  ScheduleOptions scheduling;               // the controller's
  spec::WorkerClasses worker_classes = {};  // the configured ones
  std::string tcp = {};                     // URL for TCP clients; empty: none
  std::string tcp_pin = {};                 // of the daemon's key, which they check
  Tokens* tokens = nullptr;                 // of TCP clients; those of tests may have none
  int stop_fd = -1;                         // readable when the server must end
  bool needs_groups = false;                // queues have groups of users as members
};

// Malformed request: HTTP 400 with code kUsage. A plain Error kUsage means that the request does
// not fit the state (409).
class BadRequest : public Error {
 public:
  explicit BadRequest(const std::string& message) : Error(ErrorCode::kUsage, message) {}
};

// Never throws.
ApiResponse Answer(const ApiContext& context, const ApiRequest& request);

// The response for an error.
ApiResponse ErrorResponse(const Error& error);
ApiResponse ErrorResponse(int status, ErrorCode code, const std::string& message);

// Handlers, by file. `request.path` has the right length. They throw Error.
ApiResponse SubmitJob(const ApiContext& context, const ApiRequest& request);  // api_submit.cc
ApiResponse PlanChallenge(const ApiContext& context, const ApiRequest& request);
ApiResponse ListJobs(const ApiContext& context, const ApiRequest& request);  // api_jobs.cc
ApiResponse ShowJob(const ApiContext& context, const ApiRequest& request);
ApiResponse ChangeJob(const ApiContext& context, const ApiRequest& request);
ApiResponse UpdateJob(const ApiContext& context, const ApiRequest& request);
ApiResponse PredictRunTime(const ApiContext& context, const ApiRequest& request);
ApiResponse JobLogs(const ApiContext& context, const ApiRequest& request);    // api_logs.cc
ApiResponse ListNodes(const ApiContext& context, const ApiRequest& request);  // api_nodes.cc
ApiResponse ChangeNode(const ApiContext& context, const ApiRequest& request);
ApiResponse OverrideUserQuota(const ApiContext& context, const ApiRequest& request);
ApiResponse ClusterStatus(const ApiContext& context, const ApiRequest& request);  // api_status.cc
ApiResponse ClusterSnapshot(const ApiContext& context, const ApiRequest& request);
ApiResponse ShutDown(const ApiContext& context, const ApiRequest& request);
ApiResponse ClusterUsage(const ApiContext& context, const ApiRequest& request);  // api_usage.cc
ApiResponse CreateToken(const ApiContext& context, const ApiRequest& request);   // api_tokens.cc
ApiResponse ListTokens(const ApiContext& context, const ApiRequest& request);
ApiResponse RevokeToken(const ApiContext& context, const ApiRequest& request);

// With the names of the groups, if queues ask for them: looking them up may take a while.
Caller WithGroups(const ApiContext& context, Caller caller);
// The third part of the path. Throws BadRequest if it is not a positive number.
int64_t NumberInPath(const ApiRequest& request, const char* what);
JobId JobInPath(const ApiRequest& request);
// A nonnegative integer in the query; `otherwise` if it is missing. Throws BadRequest.
int64_t NumberIn(const ApiRequest& request, const char* key, int64_t otherwise);

// Ended jobs per response; clients get more with `before`.
inline constexpr int kMaxEndedListed = 1000;

}  // namespace renzan::cluster::local
