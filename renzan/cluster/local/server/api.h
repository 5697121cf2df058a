#pragma once

// The HTTP API without HTTP: requests and answers as plain values, and their handlers. Answers are
// JSON, or a stream of text. JSON stays in the .cc files. Handlers run concurrently on the server's
// threads and access the controller through the loop's thread only.

#include <map>
#include <string>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/http/server.h"
#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/local/controller/controller.h"
#include "renzan/cluster/local/loop.h"

namespace renzan::cluster::local {

struct ApiRequest {
  std::string method;             // "GET" or "POST"
  std::vector<std::string> path;  // "/v1/jobs/12": {"v1", "jobs", "12"}
  std::map<std::string, std::string> query;
  std::string body;
  Caller caller;
  int client_fd = -1;
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
ServerAnswer Answer(const ApiContext& context, const ApiRequest& request);

// The answer for an error.
ServerAnswer ErrorResponse(const Error& error);
ServerAnswer ErrorResponse(unsigned status, ErrorCode code, const std::string& message);

// Handlers, by file. `request.path` has the right length. They throw Error.
ServerAnswer SubmitJob(const ApiContext& context, const ApiRequest& request);  // api_submit.cc
ServerAnswer PlanChallenge(const ApiContext& context, const ApiRequest& request);
ServerAnswer ListJobs(const ApiContext& context, const ApiRequest& request);  // api_jobs.cc
ServerAnswer ShowJob(const ApiContext& context, const ApiRequest& request);
ServerAnswer ChangeJob(const ApiContext& context, const ApiRequest& request);
ServerAnswer UpdateJob(const ApiContext& context, const ApiRequest& request);
ServerAnswer PredictRunTime(const ApiContext& context, const ApiRequest& request);
ServerAnswer JobLogs(const ApiContext& context, const ApiRequest& request);    // api_logs.cc
ServerAnswer ListNodes(const ApiContext& context, const ApiRequest& request);  // api_nodes.cc
ServerAnswer ChangeNode(const ApiContext& context, const ApiRequest& request);
ServerAnswer OverrideUserQuota(const ApiContext& context, const ApiRequest& request);
ServerAnswer ClusterStatus(const ApiContext& context, const ApiRequest& request);  // api_status.cc
ServerAnswer ClusterSnapshot(const ApiContext& context, const ApiRequest& request);
ServerAnswer ShutDown(const ApiContext& context, const ApiRequest& request);
ServerAnswer ClusterUsage(const ApiContext& context, const ApiRequest& request);  // api_usage.cc
ServerAnswer CreateToken(const ApiContext& context, const ApiRequest& request);   // api_tokens.cc
ServerAnswer ListTokens(const ApiContext& context, const ApiRequest& request);
ServerAnswer RevokeToken(const ApiContext& context, const ApiRequest& request);

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
