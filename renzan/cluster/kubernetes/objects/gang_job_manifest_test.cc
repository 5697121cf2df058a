#include "renzan/cluster/kubernetes/objects/gang_job_manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/cluster/kubernetes/api/yaml.h"
#include "renzan/cluster/kubernetes/objects/gang_job.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json Manifest(const std::string& yaml, const std::string& pod_template = "",
              const std::string& image = "trainer:1") {
  const json pod = JsonFromYaml(pod_template, "pod.yaml");
  return GangJobManifest(spec::ReadJobSpec(yaml, "job.yaml"),
                         {.name = "job.yaml",
                          .names_job = yaml.find("name:") != std::string::npos,
                          .pod_template = pod,
                          .pod_template_name = "pod.yaml",
                          .image = image});
}

std::string Refusal(const std::string& yaml, const std::string& pod_template = "",
                    const std::string& image = "trainer:1") {
  try {
    Manifest(yaml, pod_template, image);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    return error.what();
  }
  return "no error";
}

constexpr const char* kJob = R"(
name: kaggle
queue: vision
priority: 3
replicas: 2..8
resources: {cpu: 1.5, memory: 32GiB, gpu: 8, other: {example.com/nic: 2}}
constraints: {required: {gpu_model: a100}, topology: rack, topology_required: true}
checkpoint: {on_stop: true, on_request: true, max_interval: 5m}
environment: {A: b}
working_directory: /work
grace: 1500ms
retries: 2
retry_backoff: 3s
timeout: 2h
preemptible: false
command: [renzan, train, kaggle.yaml]
)";

// The controller reads back what was meant: no key of the specification is lost.
TEST(GangJobManifest, SaysWhatTheSpecificationSays) {
  json object = Manifest(kJob);
  object["metadata"]["namespace"] = "team";
  const GangJob job = GangJobFrom(std::make_shared<const json>(object));
  EXPECT_EQ(job.invalid, "");
  spec::JobSpec expected = spec::ReadJobSpec(kJob, "job.yaml");
  // These come from the template.
  EXPECT_EQ(At(object, {"spec", "template", "spec", "containers"})[0], json::parse(R"({
    "name": "main", "image": "trainer:1", "command": ["renzan", "train", "kaggle.yaml"],
    "workingDir": "/work", "env": [{"name": "A", "value": "b"}],
    "resources": {"requests": {"cpu": "1500m", "memory": "32768Mi"},
                  "limits": {"memory": "32768Mi", "nvidia.com/gpu": "8", "example.com/nic": "2"}}})"));
  EXPECT_EQ(job.per_worker, (Amounts{{"cpu", 1500},
                                     {"memory", int64_t{32} << 30},
                                     {"nvidia.com/gpu", 8},
                                     {"example.com/nic", 2},
                                     {"pods", 1}}));
  EXPECT_EQ(job.node_selector, (Labels{{"gpu_model", "a100"}}));
  spec::JobSpec read = job.spec;
  read.grace = expected.grace = "2s";  // whole seconds
  for (spec::JobSpec* each : {&read, &expected}) {
    each->command = {"x"};
    each->resources = {};
    each->environment = {};
    each->working_directory = "";
    each->constraints.required = {};
  }
  EXPECT_EQ(spec::PrintJobSpec(read), spec::PrintJobSpec(expected));
}

TEST(GangJobManifest, IsNamedByItsUserOrAnewEachTime) {
  EXPECT_EQ(Manifest("{name: kaggle-7, command: [a]}")["metadata"], json({{"name", "kaggle-7"}}));
  EXPECT_EQ(Manifest("{command: [/usr/bin/Train_v2.py]}")["metadata"],
            json({{"generateName", "train-v2-py-"}}));
  EXPECT_EQ(Manifest("{command: ['7z']}")["metadata"], json({{"generateName", "z-"}}));
  EXPECT_THAT(Refusal("{name: Kaggle_7, command: [a]}"),
              HasSubstr("'Kaggle_7' is not a valid name"));
}

TEST(GangJobManifest, KeepsTheRestOfTheTemplate) {
  const json spec = Manifest("{command: [a], resources: {gpu: 2}, environment: {C: d}}", R"(
metadata: {labels: {team: vision}}
spec:
  tolerations: [{operator: Exists}]
  nodeSelector: {disk: ssd}
  containers:
    - {name: sidecar, image: s}
    - name: main
      image: other
      env: [{name: A, value: b}]
      resources: {limits: {rdma/hca: "1"}}
)",
                             "")["spec"]["template"];
  EXPECT_EQ(spec["metadata"]["labels"]["team"], "vision");
  EXPECT_EQ(spec["spec"]["tolerations"].size(), 1u);
  EXPECT_EQ(spec["spec"]["nodeSelector"], json({{"disk", "ssd"}}));
  EXPECT_FALSE(spec["spec"]["containers"][0].contains("command"));
  const json& main = spec["spec"]["containers"][1];
  EXPECT_EQ(main["image"], "other");
  EXPECT_EQ(main["env"].size(), 2u);
  EXPECT_EQ(main["resources"]["limits"], json({{"rdma/hca", "1"}, {"nvidia.com/gpu", "2"}}));
}

// The terms of a template are alternatives: each excludes the nodes.
TEST(GangJobManifest, ExcludesNodes) {
  const json pod = Manifest("{command: [a], constraints: {exclude_nodes: [n1, n2]}}", R"(
spec:
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
          - matchExpressions: [{key: disk, operator: Exists}]
          - matchFields: [{key: metadata.name, operator: In, values: [n1]}]
)")["spec"]["template"]["spec"];
  const NodeFilter filter(pod);
  EXPECT_FALSE(filter.Admits("n1", {{"disk", "ssd"}}, {}));
  EXPECT_FALSE(filter.Admits("n2", {{"disk", "ssd"}}, {}));
  EXPECT_TRUE(filter.Admits("n3", {{"disk", "ssd"}}, {}));
  EXPECT_FALSE(filter.Admits("n3", {}, {}));
  const NodeFilter plain(
      Manifest("{command: [a], constraints: {exclude_nodes: [n1]}}")["spec"]["template"]["spec"]);
  EXPECT_FALSE(plain.Admits("n1", {}, {}));
  EXPECT_TRUE(plain.Admits("n2", {}, {}));
}

TEST(GangJobManifest, WorkersUploadWhatTheyLeave) {
  const json spec =
      Manifest("{command: [renzan, pod-run, --, a], upload_to: s3://b/p, artifacts: out}")["spec"];
  const json& variables = spec["template"]["spec"]["containers"][0]["env"];
  EXPECT_EQ(variables, json({{{"name", "RENZAN_UPLOAD_TO"}, {"value", "s3://b/p"}},
                             {{"name", "RENZAN_ARTIFACTS"}, {"value", "out"}}}));
}

TEST(GangJobManifest, RefusesWhatWouldBeLost) {
  EXPECT_THAT(Refusal("{command: [a], artifacts: out}"), HasSubstr("artifacts"));
  EXPECT_THAT(Refusal("{command: [a], export: 'A,B'}"), HasSubstr("export"));
  EXPECT_THAT(Refusal("{command: [a], export: ALL}"), HasSubstr("set environment"));
  EXPECT_THAT(Refusal("{command: [a], upload_to: s3://b/p}"), HasSubstr("renzan pod-run --"));
  EXPECT_THAT(Refusal("{command: [a], working_directory: x}"), HasSubstr("working_directory"));
  EXPECT_THAT(Refusal("{command: [a], constraints: {preferred: {a: b}}}"), HasSubstr("preferred"));
  EXPECT_THAT(Refusal("{command: [a], resources: {other: {nic: 1}}}"),
              HasSubstr("example.com/nic"));
  EXPECT_THAT(Refusal("{command: [a]}", "", ""), HasSubstr("--image"));
  EXPECT_THAT(Refusal("{command: [a]}", "{containers: []}"), HasSubstr("pod.yaml: has no spec"));
  EXPECT_THAT(Refusal("{command: [a]}", "{spec: {containers: [{name: a, args: [x]}]}}"),
              HasSubstr("has args"));
  EXPECT_THAT(
      Refusal("{command: [a]}",
              "{spec: {containers: [{name: a, resources: {limits: {nvidia.com/gpu: 1}}}]}}"),
      HasSubstr("resources.limits.nvidia.com/gpu"));
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
