#pragma once

// For tests of Queues: a world with one node of eight GPUs, and what the Queues' statuses say.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "renzan/cluster/kubernetes/controller/world_testing.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {

// A Queue's spec.
inline Json Gpus(const Json& guaranteed, const Json& limit = nullptr) {
  Json spec = {{"guaranteed", {{kGpuResource, guaranteed}}}};
  if (!limit.is_null()) spec["limit"] = {{kGpuResource, limit}};
  return spec;
}

struct QueueWorld : World {
  QueueWorld() { cluster.AddNode("a", 8); }
  Json StatusOf(const char* queue) { return At(cluster.Get(Queues(), "", queue, ""), {"status"}); }
  // "True Accepted: ..."
  std::string ConditionOf(const char* queue, const char* type) {
    const Json object = cluster.Get(Queues(), "", queue, "");
    for (const Json& each : At(object, {"status", "conditions"})) {
      EXPECT_EQ(NumberAt(each, {"observedGeneration"}),
                NumberAt(object, {"metadata", "generation"}));
      if (TextAt(each, {"type"}) == type)
        return fmt::format("{} {}: {}", TextAt(each, {"status"}), TextAt(each, {"reason"}),
                           TextAt(each, {"message"}));
    }
    return "none";
  }
  void AddJob(const char* name, const char* queue, int gpus) {
    Json spec = JobSpec(1, gpus);
    spec["queue"] = queue;
    cluster.AddJob("ads", name, spec, kHour);
  }
  // Why a job does not start, to a client that sees the same objects.
  std::string HeldToClients(JobId id) {
    const Observed observed = SeenByClients();
    const Job* const job = observed.snapshot.Find(id);
    return job == nullptr ? "there is no such job" : job->held;
  }
  void Ask(const char* name, const char* annotation) {
    cluster.MergePatch(GangJobs(), "ads", name,
                       {{"metadata", {{"annotations", {{annotation, "now"}}}}}}, "");
  }
  std::string MessageOf(const char* name) {
    return TextAt(*cluster.FindJob("ads", name), {"status", "message"});
  }
};

}  // namespace renzan::cluster::kubernetes
