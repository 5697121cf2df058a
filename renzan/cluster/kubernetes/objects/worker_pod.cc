#include "renzan/cluster/kubernetes/objects/worker_pod.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/kubernetes/objects/node_filter.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

using nlohmann::json;

// Below the ports that Linux gives to outgoing connections.
constexpr int kFirstPort = 20000, kPorts = 10000;

// Where `renzan pod-run` looks for requests.
constexpr const char* kPodInfoPath = "/etc/renzan/pod";
constexpr const char* kPodInfoVolume = "renzan-pod-info";

const json& TemplateOf(const GangJob& job) { return At(*job.object, {"spec", "template"}); }

bool UsesHostNetwork(const GangJob& job) {
  return IsTrueAt(TemplateOf(job), {"spec", "hostNetwork"});
}

json OwnerOf(const GangJob& job) {
  return {{"apiVersion", ApiVersion(GangJobs())},
          {"kind", GangJobs().name},
          {"name", job.name},
          {"uid", job.uid},
          {"controller", true},
          {"blockOwnerDeletion", true}};
}

// Each attempt has another port, so that nobody joins what is left of the previous attempt. On the
// hosts' network, two gangs may have their first workers on one node.
int MasterPort(const GangJob& job, int attempt) {
  constexpr int kAttempts = 16;
  return kFirstPort + static_cast<int>((job.status.id * kAttempts + attempt % kAttempts) % kPorts);
}

std::string MasterAddress(const GangJob& job, const WorkerPlace& place) {
  if (UsesHostNetwork(job)) return place.master_node;
  return fmt::format("{}.{}", PodName(job.name, place.attempt, 0), ServiceName(job.name));
}

json EnvironmentOf(const GangJob& job, const WorkerPlace& place) {
  json variables = json::array();
  const auto set = [&](const char* name, const std::string& value) {
    variables.push_back({{"name", name}, {"value", value}});
  };
  set("RENZAN_JOB_ID", job.uid);
  set("RENZAN_ATTEMPT", std::to_string(place.attempt));
  set("RENZAN_GRACE_SECONDS", fmt::format("{}", static_cast<double>(job.spec.grace_ms()) / 1000));
  // A single worker starts workers of its own, if it wants any.
  if (place.world_size == 1) return variables;
  set("RANK", std::to_string(place.rank));
  set("WORLD_SIZE", std::to_string(place.world_size));
  // Each pod has devices of its own.
  set("LOCAL_RANK", "0");
  set("MASTER_ADDR", MasterAddress(job, place));
  set("MASTER_PORT", std::to_string(MasterPort(job, place.attempt)));
  return variables;
}

// Kubelet rewrites its file when the annotation changes.
void ShowRequests(json& spec) {
  json& volumes = spec["volumes"];
  if (!volumes.is_array()) volumes = json::array();
  volumes.push_back({{"name", kPodInfoVolume},
                     {"downwardAPI",
                      {{"items",
                        {{{"path", "checkpoint-request"},
                          {"fieldRef",
                           {{"fieldPath", fmt::format("metadata.annotations['{}']",
                                                      kCheckpointRequestAnnotation)}}}}}}}}});
  for (json& container : spec["containers"]) {
    json& mounts = container["volumeMounts"];
    if (!mounts.is_array()) mounts = json::array();
    mounts.push_back({{"name", kPodInfoVolume}, {"mountPath", kPodInfoPath}, {"readOnly", true}});
  }
}

}  // namespace

std::string PodName(const std::string& job, int attempt, int rank) {
  return fmt::format("{}-{}-{}", job, attempt, rank);
}

std::string ServiceName(const std::string& job) { return job + "-workers"; }

json WorkerPod(const GangJob& job, const WorkerPlace& place) {
  const json& given = TemplateOf(job);
  json pod = {{"apiVersion", "v1"}, {"kind", "Pod"}, {"spec", At(given, {"spec"})}};
  json& metadata = pod["metadata"];
  for (const char* key : {"labels", "annotations"})
    if (const json& map = At(given, {"metadata", key}); map.is_object()) metadata[key] = map;
  metadata["namespace"] = job.ns;
  metadata["name"] = PodName(job.name, place.attempt, place.rank);
  metadata["labels"][kJobNameLabel] = job.name;
  metadata["labels"][kAttemptLabel] = std::to_string(place.attempt);
  metadata["labels"][kRankLabel] = std::to_string(place.rank);
  metadata["ownerReferences"] = json::array({OwnerOf(job)});
  json& spec = pod["spec"];
  spec["schedulerName"] = kSchedulerName;
  spec["restartPolicy"] = "Never";
  json& tolerations = spec["tolerations"];
  if (!tolerations.is_array()) tolerations = json::array();
  tolerations.push_back({{"key", kDedicatedTaint}, {"operator", "Exists"}});
  if (NeedsService(job, place.world_size)) {
    spec["hostname"] = metadata["name"];
    spec["subdomain"] = ServiceName(job.name);
  }
  const json environment = EnvironmentOf(job, place);
  for (const char* group : {"initContainers", "containers"}) {
    if (!spec.contains(group)) continue;
    for (json& container : spec[group]) {
      json& variables = container["env"];
      if (!variables.is_array()) variables = json::array();
      // First, so that the template's own variables may refer to them.
      variables.insert(variables.begin(), environment.begin(), environment.end());
    }
  }
  if (job.spec.checkpoint.on_stop || job.spec.checkpoint.on_request) ShowRequests(spec);
  return pod;
}

std::vector<std::string> ClaimsOf(const GangJob& job) {
  std::vector<std::string> claims;
  for (const json& volume : At(TemplateOf(job), {"spec", "volumes"}))
    if (std::string claim = TextAt(volume, {"persistentVolumeClaim", "claimName"}); !claim.empty())
      claims.push_back(std::move(claim));
  return claims;
}

bool NeedsService(const GangJob& job, int world_size) {
  return world_size > 1 && !UsesHostNetwork(job);
}

json WorkerService(const GangJob& job) {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata",
           {{"namespace", job.ns},
            {"name", ServiceName(job.name)},
            {"labels", {{kJobNameLabel, job.name}}},
            {"ownerReferences", json::array({OwnerOf(job)})}}},
          {"spec",
           {{"clusterIP", "None"},
            // Workers look for each other before they are ready.
            {"publishNotReadyAddresses", true},
            // Selects only the pod whose name the others get: with all of them, the server would be
            // told twice for each worker.
            {"selector", {{kJobNameLabel, job.name}, {kRankLabel, "0"}}}}}};
}

}  // namespace renzan::cluster::kubernetes
