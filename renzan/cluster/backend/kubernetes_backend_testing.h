#pragma once

// A client of a simulated Kubernetes, where a controller runs, for tests.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "renzan/base/clock_testing.h"
#include "renzan/cluster/backend/kubernetes.h"
#include "renzan/cluster/kubernetes/controller/world_testing.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"

namespace renzan::cluster {

using kubernetes::FakeCluster;
using kubernetes::Json;

// Each client and the controller have an Api of their own; all lead to the same cluster.
class SharedApi : public kubernetes::Api {
 public:
  // `lists`: how many lists have been asked for.
  SharedApi(FakeCluster& cluster, int& lists) : cluster_(cluster), lists_(lists) {}
  Json Get(const kubernetes::Kind& kind, const std::string& ns, const std::string& name,
           const std::string& subresource) override {
    return cluster_.Get(kind, ns, name, subresource);
  }
  Json List(const kubernetes::Kind& kind, const std::string& ns,
            const kubernetes::Selector& selector) override {
    ++lists_;
    return cluster_.List(kind, ns, selector);
  }
  Json Create(const kubernetes::Kind& kind, const std::string& ns, const Json& object) override {
    return cluster_.Create(kind, ns, object);
  }
  Json Replace(const kubernetes::Kind& kind, const std::string& ns, const Json& object,
               const std::string& subresource) override {
    return cluster_.Replace(kind, ns, object, subresource);
  }
  Json MergePatch(const kubernetes::Kind& kind, const std::string& ns, const std::string& name,
                  const Json& patch, const std::string& subresource) override {
    return cluster_.MergePatch(kind, ns, name, patch, subresource);
  }
  void Delete(const kubernetes::Kind& kind, const std::string& ns, const std::string& name,
              const std::string& uid, std::optional<int64_t> grace) override {
    cluster_.Delete(kind, ns, name, uid, grace);
  }
  void Bind(const std::string& ns, const std::string& pod, const std::string& uid,
            const std::string& node) override {
    cluster_.Bind(ns, pod, uid, node);
  }
  void Watch(const kubernetes::Kind& kind, const std::string& ns,
             const kubernetes::Selector& selector, const std::string& version,
             const std::function<void(std::string_view, Json&&)>& take) override {
    cluster_.Watch(kind, ns, selector, version, take);
  }

 private:
  FakeCluster& cluster_;
  int& lists_;
};

// Returns a description of each request as the log.
class FakeLogs : public kubernetes::PodLogs {
 public:
  void Read(const kubernetes::LogRequest& request,
            const std::function<void(std::string_view)>& take) override {
    take(fmt::format("{}/{} {} follow={} tail={}\n", request.ns, request.pod, request.container,
                     request.follow, request.tail_lines.value_or(-1)));
  }
};

class KubernetesBackendTest : public ::testing::Test {
 protected:
  KubernetesBackendTest() : backend_(Of({.server = "https://x", .ns = "ads"})) {
    cluster_.AddNode("a", 8);
    cluster_.AddNode("b", 8);
  }

  std::unique_ptr<Backend> Of(KubernetesTarget target) {
    return MakeKubernetesBackend(std::make_unique<SharedApi>(cluster_, lists_),
                                 std::make_unique<FakeLogs>(), std::move(target), clock_);
  }

  void Run(TimeMs duration) {
    const std::string allowed = std::exchange(cluster_.allowed_namespace, "");
    world_.Run(duration);
    EXPECT_THAT(world_.wrong, ::testing::IsEmpty());
    cluster_.allowed_namespace = allowed;
  }

  void AddJob(const std::string& ns, const std::string& name, int replicas, int gpus,
              TimeMs work_ms = kHour) {
    cluster_.AddJob(
        ns, name,
        {{"replicas", replicas},
         {"checkpoint", {{"onStop", true}, {"onRequest", true}}},
         {"template",
          {{"spec",
            {{"containers",
              {{{"name", "main"},
                {"image", "trainer"},
                {"resources",
                 {{"limits", {{kubernetes::kGpuResource, std::to_string(gpus)}}}}}}}}}}}}},
        work_ms);
  }

  Submitted Submit(const std::string& yaml, std::vector<std::string> overrides = {}) {
    return backend_->Submit({.job = {yaml, "job.yaml", std::move(overrides)},
                             .directory = "/home/a",
                             .image = yaml.find("kind:") == std::string::npos ? "i" : ""});
  }

  template <typename Ask>
  static std::string Refusal(ErrorCode code, Ask ask) {
    try {
      ask();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    return "no error";
  }

  std::string StateOf(const std::string& job) { return backend_->ShowJob(job).at("state"); }
  std::string LogOf(const std::string& job, const LogQuery& query) {
    std::string log;
    backend_->ReadLog(job, query, [&](std::string_view piece) { log += piece; });
    return log;
  }

  kubernetes::World world_;
  int lists_ = 0;
  ManualClock& clock_ = world_.clock;
  FakeCluster& cluster_ = world_.cluster;
  std::unique_ptr<Backend> backend_;
};

}  // namespace renzan::cluster
