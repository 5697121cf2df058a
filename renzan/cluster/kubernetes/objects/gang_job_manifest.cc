#include "renzan/cluster/kubernetes/objects/gang_job_manifest.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/spec/amounts.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

using nlohmann::json;

constexpr const char* kMainContainer = "main";
constexpr size_t kMaxNameBytes = 49;  // pods' names contain it (gangjobs.yaml)
constexpr size_t kSuffixBytes = 6;    // of a generated name: "-x7k2p"

bool IsObjectName(const std::string& name) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && name.size() <= kMaxNameBytes && is_letter(name.front()) &&
         name.back() != '-' && std::all_of(name.begin(), name.end(), [&](char c) {
           return is_letter(c) || is_digit(c) || c == '-';
         });
}

// "Train_v2.py" to "train-v2-py".
std::string ToObjectName(std::string name) {
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9')) c = '-';
  }
  name.erase(0, name.find_first_not_of("-0123456789"));
  name.resize(std::min(name.size(), kMaxNameBytes - kSuffixBytes));
  while (name.ends_with('-')) name.pop_back();
  return name.empty() ? "job" : name;
}

json MetadataOf(const spec::JobSpec& spec, const ManifestSource& source) {
  if (!source.names_job) return {{"generateName", ToObjectName(spec.name) + "-"}};
  if (!IsObjectName(spec.name))
    Fail(ErrorCode::kConfig,
         "{}: name: '{}' is not a valid name on Kubernetes: at most {} lower-case letters, digits "
         "and '-', beginning with a letter",
         source.name, spec.name, kMaxNameBytes);
  return {{"name", spec.name}};
}

// Refuses what would otherwise be lost silently.
void RefuseWhatIsMissing(const spec::JobSpec& spec, const std::string& source) {
  const auto refuse = [&](const char* key, const char* instead) {
    Fail(ErrorCode::kConfig, "{}: {} has no counterpart on Kubernetes: {}", source, key, instead);
  };
  if (!spec.artifacts.empty() && spec.upload_to.empty())
    refuse("artifacts", "set upload_to, or write to a volume of the pod template (--pod-template)");
  if (!spec.upload_to.empty() &&
      std::find(spec.command.begin(), spec.command.end(), "pod-run") == spec.command.end())
    Fail(ErrorCode::kConfig,
         "{}: upload_to: on Kubernetes the worker itself uploads what it leaves: begin the command "
         "with renzan pod-run --",
         source);
  if (!spec.exported.empty() && spec.exported != spec::kExportNone)
    refuse("export", "set environment, or a secret in the pod template (--pod-template)");
  if (!spec.constraints.preferred.empty())
    refuse("constraints.preferred", "use constraints.required, or leave it out");
  if (!spec.working_directory.empty() && spec.working_directory.front() != '/')
    refuse("a relative working_directory", "name a directory of the image, beginning with '/'");
}

json ResourcesOf(const spec::JobSpec::PerWorker& worker, const std::string& source) {
  json requests = json::object(), limits = json::object();
  if (worker.cpu > 0) requests["cpu"] = fmt::format("{}m", std::llround(worker.cpu * 1000));
  if (const int64_t mebibytes = spec::ParseMebibytes(worker.memory); mebibytes > 0)
    // A worker that uses more is killed, as on this machine.
    requests["memory"] = limits["memory"] = fmt::format("{}Mi", mebibytes);
  if (worker.gpu > 0) limits[kGpuResource] = std::to_string(worker.gpu);
  for (const auto& [name, amount] : worker.other) {
    if (name.find('/') == std::string::npos)
      Fail(ErrorCode::kConfig,
           "{}: resources.other.{}: a resource of Kubernetes has a name such as example.com/{}",
           source, name, name);
    limits[name] = std::to_string(amount);
  }
  return {{"requests", requests}, {"limits", limits}};
}

// The specification sets each of these keys, so one in the template is a mistake.
void RefuseContradictions(const json& container, const ManifestSource& source) {
  for (const char* key : {"command", "args"})
    if (!At(container, {key}).is_null())
      Fail(ErrorCode::kConfig, "{}: the main container has {}, but {} says what is run: remove it",
           source.pod_template_name, key, source.name);
  for (const char* group : {"requests", "limits"})
    for (const char* key : {"cpu", "memory", kGpuResource})
      if (!At(container, {"resources", group, key}).is_null())
        Fail(ErrorCode::kConfig,
             "{}: the main container has resources.{}.{}, but {} says how much a worker gets: "
             "remove it",
             source.pod_template_name, group, key, source.name);
}

json& MainContainerIn(json& pod_spec) {
  json& containers = pod_spec["containers"];
  if (!containers.is_array() || containers.empty())
    containers = json::array({{{"name", kMainContainer}}});
  return const_cast<json&>(*MainContainer(pod_spec));  // NOLINT: of our own object
}

// By name, in each term of the template's required node affinity: terms are alternatives.
void ExcludeNodes(const std::vector<std::string>& nodes, json& pod_spec) {
  if (nodes.empty()) return;
  json& terms = pod_spec["affinity"]["nodeAffinity"]
                        ["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
  if (!terms.is_array() || terms.empty()) terms = json::array({json::object()});
  for (json& term : terms)
    for (const std::string& node : nodes)  // a requirement on a field has exactly one value
      term["matchFields"].push_back(
          {{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", {node}}});
}

json PodTemplateOf(const spec::JobSpec& spec, const ManifestSource& source) {
  json pod = {{"spec", At(source.pod_template, {"spec"})}};
  if (const json& metadata = At(source.pod_template, {"metadata"}); metadata.is_object())
    pod["metadata"] = metadata;
  json& pod_spec = pod["spec"];
  if (!pod_spec.is_object()) {
    if (!source.pod_template.is_null())
      Fail(ErrorCode::kConfig,
           "{}: has no spec: it must be a pod, or the template of one, with metadata and spec",
           source.pod_template_name);
    pod_spec = json::object();
  }
  json& container = MainContainerIn(pod_spec);
  RefuseContradictions(container, source);
  if (!source.image.empty()) container["image"] = source.image;
  if (!container.contains("image"))
    Fail(ErrorCode::kConfig,
         "{}: on Kubernetes a job needs an image: name one with --image, or in the pod template "
         "(--pod-template)",
         source.name);
  container["command"] = spec.command;
  if (!spec.working_directory.empty()) container["workingDir"] = spec.working_directory;
  for (const auto& [name, value] : spec.environment)
    container["env"].push_back({{"name", name}, {"value", value}});
  if (!spec.checkpoint.directory.empty())
    container["env"].push_back(
        {{"name", "RENZAN_CHECKPOINT_DIR"}, {"value", spec.checkpoint.directory}});
  if (!spec.upload_to.empty()) {
    container["env"].push_back({{"name", "RENZAN_UPLOAD_TO"}, {"value", spec.upload_to}});
    if (!spec.artifacts.empty())
      container["env"].push_back({{"name", "RENZAN_ARTIFACTS"}, {"value", spec.artifacts}});
  }
  json& resources = container["resources"];
  if (!resources.is_object()) resources = json::object();
  resources.merge_patch(ResourcesOf(spec.resources, source.name));
  for (const auto& [label, value] : spec.constraints.required)
    pod_spec["nodeSelector"][label] = value;
  ExcludeNodes(spec.constraints.exclude_nodes, pod_spec);
  pod_spec["terminationGracePeriodSeconds"] = (spec.grace_ms() + 999) / 1000;
  return pod;
}

}  // namespace

const json* MainContainer(const json& pod_spec) {
  const json& containers = At(pod_spec, {"containers"});
  if (!containers.is_array() || containers.empty()) return nullptr;
  for (const json& container : containers)
    if (TextAt(container, {"name"}) == kMainContainer) return &container;
  return &containers.front();
}

json GangJobManifest(const spec::JobSpec& spec, const ManifestSource& source) {
  RefuseWhatIsMissing(spec, source.name);
  json job = {{"apiVersion", ApiVersion(GangJobs())},
              {"kind", GangJobs().name},
              {"metadata", MetadataOf(spec, source)}};
  job["spec"] = {{"queue", spec.queue},
                 {"priority", spec.priority},
                 {"replicas", spec.max_workers()},
                 {"retries", spec.retries},
                 {"retryBackoff", spec.retry_backoff},
                 {"timeout", spec.timeout},
                 {"preemptible", spec.preemptible},
                 {"grandChallenge", spec.grand_challenge},
                 {"checkpoint",
                  {{"onStop", spec.checkpoint.on_stop},
                   {"onRequest", spec.checkpoint.on_request},
                   {"maxInterval", spec.checkpoint.max_interval}}},
                 {"template", PodTemplateOf(spec, source)}};
  if (spec.min_workers() != spec.max_workers()) job["spec"]["minReplicas"] = spec.min_workers();
  if (!spec.constraints.topology.empty())
    job["spec"]["topology"] = {{"level", spec.constraints.topology},
                               {"required", spec.constraints.topology_required}};
  return job;
}

}  // namespace renzan::cluster::kubernetes
