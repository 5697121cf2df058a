#pragma once

// Reviews of a small cluster's objects, for tests.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "renzan/cluster/kubernetes/admission/review.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {

inline constexpr TimeMs kNow = 1'800'000'000'000;

inline Json JobObject(const Json& spec = Json::object()) {
  Json object = {
      {"apiVersion", "renzan.dev/v1alpha1"},
      {"kind", "GangJob"},
      {"metadata", {{"namespace", "ads"}, {"name", "ranker"}, {"uid", "u"}}},
      {"spec",
       {{"queue", "default"},
        {"replicas", 2},
        {"template", {{"spec", {{"containers", {{{"name", "main"}, {"image", "x"}}}}}}}}}}};
  object["spec"].update(spec);
  return object;
}

inline Json JobWithGpus(int gpus, const Json& spec = Json::object()) {
  Json object = JobObject(spec);
  object["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {
      {"nvidia.com/gpu", std::to_string(gpus)}};
  return object;
}

inline Json WithStatus(Json object, const std::string& phase, int workers = 2) {
  object["status"] = {{"phase", phase}, {"attempts", 1}};
  if (workers > 0) object["status"]["placement"] = {{{"node", "n0"}, {"workers", workers}}};
  return object;
}

inline Json Review(const std::string& operation, const Json& object, const Json& before = nullptr) {
  return {
      {"apiVersion", "admission.k8s.io/v1"},
      {"kind", "AdmissionReview"},
      {"request",
       {{"uid", "7"},
        {"operation", operation},
        {"namespace", "ads"},
        {"userInfo", {{"username", "ann"}, {"groups", {"system:authenticated", "ml"}}}},
        {"resource", {{"group", "renzan.dev"}, {"version", "v1alpha1"}, {"resource", "gangjobs"}}},
        {"object", object},
        {"oldObject", before}}}};
}

inline WatchChange Listed(Json items) {
  return {WatchChange::Type::kSynced, std::make_shared<const Json>(std::move(items))};
}

inline Json NodeObject(const std::string& name, int gpus) {
  return {{"metadata", {{"name", name}, {"labels", {{"renzan.dev/pool", "p"}, {"zone", "a"}}}}},
          {"status",
           {{"allocatable",
             {{"cpu", "8"},
              {"memory", "64Gi"},
              {"pods", "110"},
              {"nvidia.com/gpu", std::to_string(gpus)}}},
            {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}};
}

inline Json QueueObject(const std::string& name, const Json& limit = Json::object()) {
  return {{"metadata", {{"name", name}}}, {"spec", {{"limit", limit}}}};
}

struct Verdict {
  bool allowed = false;
  std::string message;
  std::vector<std::string> warnings;
};

class ReviewTest : public ::testing::Test {
 protected:
  // There are no queues, and no policy that could be used: without one, no job had a priority.
  void SetUp() override {
    SeeQueues(Json::array());
    const Json policy = {{"metadata", {{"name", "default"}}},
                         {"spec", {{"limits", {{"maxPriority", "high"}}}}}};
    view_.TakePolicy(Listed(Json::array({policy})), kNow);
  }

  void SeeNodes(const Json& nodes) { view_.Take(Source::kNodes, Listed(nodes), kNow); }
  void SeeQueues(const Json& queues) { view_.Take(Source::kQueues, Listed(queues), kNow); }

  Json Ask(const Json& review) {
    const ServerAnswer answer = AnswerReview(review.dump(), view_, kNow);
    EXPECT_EQ(answer.status, 200u) << answer.text;
    EXPECT_STREQ(answer.content_type, "application/json");
    return Json::parse(answer.text);
  }
  Verdict Judge(const Json& review) {
    const Json answer = Ask(review);
    const Json& response = answer.at("response");
    EXPECT_EQ(response.at("uid"), "7");
    Verdict verdict{.allowed = response.at("allowed"),
                    .message = TextAt(response, {"status", "message"})};
    if (response.contains("warnings"))
      verdict.warnings = response["warnings"].get<std::vector<std::string>>();
    EXPECT_EQ(verdict.allowed, verdict.message.empty());
    return verdict;
  }
  Verdict Create(const Json& object) { return Judge(Review("CREATE", object)); }
  Verdict Update(const Json& before, const Json& spec) {
    Json object = before;
    object["spec"].update(spec);
    return Judge(Review("UPDATE", object, before));
  }

  ClusterView view_;
};

}  // namespace renzan::cluster::kubernetes
