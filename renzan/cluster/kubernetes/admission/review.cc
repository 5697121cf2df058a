#include "renzan/cluster/kubernetes/admission/review.h"

#include <fmt/format.h>

#include <exception>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/cluster/kubernetes/admission/job_check.h"
#include "renzan/cluster/kubernetes/objects/cluster_policy.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/kubernetes/objects/node_pool.h"
#include "renzan/cluster/kubernetes/objects/queue.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

// No Kubernetes object is nearly as deep. Some processing of JSON is recursive.
constexpr int kMostLevels = 200;

[[noreturn]] void FailMalformed(const std::string& what) {
  Fail(ErrorCode::kData, "expected an AdmissionReview of admission.k8s.io/v1: {}", what);
}

Json Parse(const std::string& body) {
  try {
    return Json::parse(body, [](int level, Json::parse_event_t, Json&) {
      if (level > kMostLevels) FailMalformed(fmt::format("more than {} levels", kMostLevels));
      return true;
    });
  } catch (const Json::exception& error) {
    FailMalformed(error.what());
  }
}

// `status`: whether the object's status matters.
GangJob JobOf(const Json& request, const char* key, bool status) {
  Json object = At(request, {key});
  if (!object.is_object()) FailMalformed(fmt::format("request.{} is no object", key));
  if (!At(object, {"spec"}).is_object()) object["spec"] = Json::object();
  if (!At(object, {"metadata"}).is_object()) object["metadata"] = Json::object();
  object["metadata"]["namespace"] = At(request, {"namespace"});
  if (!status) object.erase("status");
  return GangJobFrom(std::make_shared<const Json>(std::move(object)));
}

GangJob JobBefore(const Json& request) {
  try {
    return JobOf(request, "oldObject", true);
  } catch (const Error&) {
    return JobOf(request, "oldObject", false);  // its status is of another version
  }
}

Requester RequesterOf(const Json& request) {
  Requester requester{.user = TextAt(request, {"userInfo", "username"}), .groups = {}};
  if (requester.user.empty()) FailMalformed("request.userInfo.username is missing");
  for (const Json& group : At(request, {"userInfo", "groups"}))
    if (group.is_string()) requester.groups.push_back(group.get<std::string>());
  return requester;
}

// Why the controller would not use a Queue, NodePool or ClusterPolicy.
std::string WhyItCannotHold(const std::string& resource, const Json& object) {
  try {
    if (resource == Queues().plural) QueueSpecFrom(At(object, {"spec"}));
    if (resource == ClusterPolicies().plural) ClusterPolicyFrom(At(object, {"spec"}));
    if (resource == NodePools().plural)
      return NodePoolFrom(std::make_shared<const Json>(object)).invalid;
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

JobVerdict JudgeOther(const std::string& resource, const Json& request) {
  const Json& object = At(request, {"object"});
  if (!object.is_object()) FailMalformed("request.object is no object");
  JobVerdict verdict;
  // Only metadata such as labels or finalizers has changed: errors elsewhere must not prevent that.
  if (At(object, {"spec"}) == At(request, {"oldObject", "spec"}) ||
      At(object, {"metadata", "deletionTimestamp"}).is_string())
    return verdict;
  if (const std::string why = WhyItCannotHold(resource, object); !why.empty())
    verdict.refusal = fmt::format("{} {}: {}", resource, TextAt(request, {"name"}), why);
  return verdict;
}

JobVerdict Judge(const Json& request, ClusterView& cluster, TimeMs now) {
  const std::string operation = TextAt(request, {"operation"});
  const std::string resource = TextAt(request, {"resource", "resource"});
  const bool updates = operation == "UPDATE";
  if (TextAt(request, {"resource", "group"}) != kGroup ||
      !TextAt(request, {"subResource"}).empty() || (operation != "CREATE" && !updates))
    return {};
  if (resource != GangJobs().plural) return JudgeOther(resource, request);
  const GangJob job = JobOf(request, "object", false);
  const Requester requester = RequesterOf(request);
  if (!updates) return CheckJob(job, nullptr, requester, cluster, now);
  const GangJob before = JobBefore(request);
  return CheckJob(job, &before, requester, cluster, now);
}

Json RefusalStatus(const JobVerdict& verdict) {
  // kubectl does try again.
  if (verdict.try_again)
    return {{"code", 503},
            {"reason", "ServiceUnavailable"},
            {"message", verdict.refusal},
            {"details", {{"retryAfterSeconds", 1}}}};
  // Not "Invalid": kubectl before 1.24 would not print its message.
  return {{"code", verdict.forbidden ? 403 : 400},
          {"reason", verdict.forbidden ? "Forbidden" : "BadRequest"},
          {"message", verdict.refusal}};
}

Json Answered(const Json& review, const std::string& uid, const JobVerdict& verdict) {
  Json response = {{"uid", uid}, {"allowed", verdict.refusal.empty()}};
  if (!verdict.warnings.empty()) response["warnings"] = verdict.warnings;
  if (!verdict.refusal.empty()) response["status"] = RefusalStatus(verdict);
  return {{"apiVersion", At(review, {"apiVersion"})},
          {"kind", "AdmissionReview"},
          {"response", std::move(response)}};
}

ServerAnswer Answer(const std::string& body, ClusterView& cluster, TimeMs now) {
  const Json review = Parse(body);
  const std::string version = TextAt(review, {"apiVersion"});
  if (TextAt(review, {"kind"}) != "AdmissionReview" ||
      (version != "admission.k8s.io/v1" && version != "admission.k8s.io/v1beta1"))
    FailMalformed(
        fmt::format("kind is '{}', apiVersion is '{}'", TextAt(review, {"kind"}), version));
  const Json& request = At(review, {"request"});
  const std::string uid = TextAt(request, {"uid"});
  if (uid.empty()) FailMalformed("request.uid is missing");
  const Json answer = Answered(review, uid, Judge(request, cluster, now));
  return {.status = 200,
          .text = answer.dump(-1, ' ', false, Json::error_handler_t::replace),
          .content_type = "application/json"};
}

}  // namespace

ServerAnswer AnswerReview(const std::string& body, ClusterView& cluster, TimeMs now) {
  std::string why;
  try {
    return Answer(body, cluster, now);
  } catch (const std::exception& error) {
    why = error.what();
  }
  for (char& c : why)
    if (c == '\n' || c == '\r') c = ' ';
  return {.status = 400, .text = why + "\n"};
}

}  // namespace renzan::cluster::kubernetes
