#include "renzan/cluster/kubernetes/objects/worker_pod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What trainers on many GPUs need of a pod.
const json kPodSpec = json::parse(R"({
  "hostNetwork": true,
  "dnsPolicy": "ClusterFirstWithHostNet",
  "imagePullSecrets": [{"name": "registry"}],
  "nodeSelector": {"gpu": "h100"},
  "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
  "securityContext": {"runAsUser": 65532, "fsGroup": 65532},
  "serviceAccountName": "trainer",
  "terminationGracePeriodSeconds": 300,
  "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}},
              {"name": "data", "persistentVolumeClaim": {"claimName": "clicks"}},
              {"name": "scratch", "hostPath": {"path": "/nvme"}}],
  "containers": [{
    "name": "main",
    "image": "registry.example.com/trainer:7",
    "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
    "resources": {"limits": {"nvidia.com/gpu": "8", "rdma/hca": "4"}},
    "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"},
                     {"name": "data", "mountPath": "/data"}]
  }]
})");

GangJob JobOf(json pod_spec, json spec = json::object()) {
  spec["template"] = {{"metadata", {{"annotations", {{"team", "ads"}}}}},
                      {"spec", std::move(pod_spec)}};
  return GangJobFrom(std::make_shared<const json>(
      json{{"metadata", {{"namespace", "ads"}, {"name", "train"}, {"uid", "u"}}}, {"spec", spec}}));
}

TEST(WorkerPod, KeepsWhatTheTemplateSays) {
  const json pod =
      WorkerPod(JobOf(kPodSpec), {.rank = 1, .world_size = 2, .master_node = "10.0.0.1"});
  json spec = pod["spec"];
  // Exactly what is added.
  const json tolerations = spec["tolerations"];
  ASSERT_EQ(tolerations.size(), 2u);
  EXPECT_EQ(tolerations[0], kPodSpec["tolerations"][0]);
  EXPECT_EQ(tolerations[1]["key"], "renzan.dev/dedicated");
  spec["tolerations"].erase(1);
  EXPECT_EQ(spec["schedulerName"], "renzan");
  EXPECT_EQ(spec["restartPolicy"], "Never");
  spec.erase("schedulerName");
  spec.erase("restartPolicy");
  EXPECT_FALSE(spec["containers"][0]["env"].empty());
  spec["containers"][0].erase("env");
  EXPECT_EQ(spec, kPodSpec);
  EXPECT_EQ(pod["metadata"]["annotations"], (json{{"team", "ads"}}));
}

TEST(WorkerPod, KeepsItsVolumesBesideThatOfRequests) {
  const json pod = WorkerPod(JobOf(kPodSpec, {{"checkpoint", {{"onStop", true}}}}), {});
  const json& volumes = pod["spec"]["volumes"];
  ASSERT_EQ(volumes.size(), 4u);
  for (int at = 0; at < 3; ++at) EXPECT_EQ(volumes[at], kPodSpec["volumes"][at]);
  const json& mounts = pod["spec"]["containers"][0]["volumeMounts"];
  ASSERT_EQ(mounts.size(), 3u);
  EXPECT_EQ(mounts[0]["mountPath"], "/dev/shm");
}

TEST(WorkerPod, OnTheHostsNetworkWorkersFindTheFirstByItsNode) {
  const GangJob job = JobOf(kPodSpec);
  EXPECT_FALSE(NeedsService(job, 2));
  const json pod = WorkerPod(job, {.rank = 1, .world_size = 2, .master_node = "10.0.0.1"});
  const json& variables = pod["spec"]["containers"][0]["env"];
  EXPECT_THAT(variables, ::testing::Contains(json{{"name", "MASTER_ADDR"}, {"value", "10.0.0.1"}}));
  EXPECT_FALSE(pod["spec"].contains("subdomain"));
}

TEST(WorkerPod, TellsWhichClaimsItMounts) {
  EXPECT_THAT(ClaimsOf(JobOf(kPodSpec)), ElementsAre("clicks"));
  EXPECT_THAT(ClaimsOf(JobOf({{"containers", json::array()}})), IsEmpty());
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
