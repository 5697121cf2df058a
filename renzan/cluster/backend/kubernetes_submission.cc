#include "renzan/cluster/backend/kubernetes_submission.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cluster/kubernetes/api/yaml.h"
#include "renzan/cluster/kubernetes/objects/gang_job_manifest.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster {
namespace {

using nlohmann::json;

bool IsManifest(const json& written) {
  return written.is_object() && (written.contains("kind") || written.contains("apiVersion"));
}

void CheckManifest(const json& manifest, const Submission& submission) {
  const std::string version = kubernetes::ApiVersion(kubernetes::GangJobs());
  const std::string kind = TextAt(manifest, {"kind"});
  const std::string given = TextAt(manifest, {"apiVersion"});
  if (kind != kubernetes::GangJobs().name || given != version)
    Fail(ErrorCode::kConfig,
         "{}: is a {} of {}, not a {} of {}: `renzan submit` takes these; apply others with "
         "`kubectl apply`",
         submission.job.source, kind.empty() ? "nameless kind" : kind,
         given.empty() ? "no apiVersion" : given, kubernetes::GangJobs().name, version);
  const auto refuse = [&](const char* flag) {
    Fail(ErrorCode::kUsage,
         "{}: is a whole GangJob, which {} cannot change: edit the file, or give a job "
         "specification instead",
         submission.job.source, flag);
  };
  if (!submission.image.empty()) refuse("--image");
  if (!submission.pod_template.empty()) refuse("--pod-template");
  for (const std::string& each : submission.job.overrides)
    refuse(("an override (" + each + ")").c_str());
}

bool NamesJob(const json& written, const std::vector<std::string>& overrides) {
  return !TextAt(written, {"name"}).empty() ||
         std::any_of(overrides.begin(), overrides.end(),
                     [](const std::string& each) { return each.starts_with("name="); });
}

}  // namespace

json GangJobOf(const Submission& submission, const std::string& ns, bool ns_given,
               bool needs_image) {
  const JobText& job = submission.job;
  json object = kubernetes::JsonFromYaml(job.yaml, job.source);
  if (IsManifest(object)) {
    CheckManifest(object, submission);
  } else {
    const spec::JobSpec spec = spec::ReadJobSpec(job.yaml, job.source, job.overrides);
    const std::string& file = submission.pod_template;
    const json pod_template =
        file.empty() ? json() : kubernetes::JsonFromYaml(ReadFile(file), file);
    object = kubernetes::GangJobManifest(
        spec, {.name = job.source,
               .names_job = NamesJob(object, job.overrides),
               .pod_template = pod_template,
               .pod_template_name = file,
               .image = submission.image.empty() && !needs_image ? "none" : submission.image});
  }
  json& metadata = object["metadata"];
  if (!metadata.is_object()) metadata = json::object();
  const std::string given = TextAt(metadata, {"namespace"});
  if (ns_given && !given.empty() && given != ns)
    Fail(ErrorCode::kUsage, "{}: is for the namespace {}, but --namespace is {}: choose one",
         job.source, given, ns);
  if (given.empty()) metadata["namespace"] = ns;
  return object;
}

json RepeatedGangJob(const kubernetes::GangJob& job) {
  constexpr size_t kMaxBytes = 42;  // a generated name is longer
  json object = {
      {"apiVersion", kubernetes::ApiVersion(kubernetes::GangJobs())},
      {"kind", kubernetes::GangJobs().name},
      {"metadata", {{"namespace", job.ns}, {"generateName", job.name.substr(0, kMaxBytes) + "-"}}},
      {"spec", At(*job.object, {"spec"})}};
  for (const char* wish : {"cancelled", "held"}) object["spec"].erase(wish);
  return object;
}

SpecChange SpecChangeOf(const kubernetes::GangJob& job, const spec::JobChange& change) {
  const auto& [priority, queue, timeout] = change;
  // Refuses what the schema would refuse.
  const spec::JobSpec given = spec::WithChange("command: [x]", job.path(), change);
  spec::JobSpec after = job.spec;
  json patch = json::object();
  if (!priority.empty()) patch["priority"] = after.priority = given.priority;
  if (!queue.empty()) patch["queue"] = after.queue = given.queue;
  if (!timeout.empty()) patch["timeout"] = after.timeout = given.timeout;
  SpecChange wanted{
      .patch = patch.dump(), .what = spec::DifferenceText(job.spec, after), .note = ""};
  const RecordState state = job.status.state;
  if (state == RecordState::kPending) return wanted;
  if (after.queue != job.spec.queue)
    Fail(ErrorCode::kUsage,
         "job {} is {}: its queue can be changed only while it waits (`renzan job hold` and "
         "`renzan job preempt` make it wait)",
         job.path(), NameOf(state));
  // As the controller does it (Controller::Edit).
  if (after.priority != job.spec.priority)
    wanted.note = fmt::format("it is {}: the priority applies when it next starts", NameOf(state));
  return wanted;
}

}  // namespace renzan::cluster
