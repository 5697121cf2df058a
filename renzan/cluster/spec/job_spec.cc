#include "renzan/cluster/spec/job_spec.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/cluster/spec/describe.h"
#include "renzan/cluster/spec/names.h"

namespace renzan::cluster::spec {
namespace {

constexpr double kMaxWorkerCores = 100'000;

const std::vector<std::string> kContractVariables = {"RANK",
                                                     "WORLD_SIZE",
                                                     "LOCAL_RANK",
                                                     "MASTER_ADDR",
                                                     "MASTER_PORT",
                                                     "CUDA_VISIBLE_DEVICES",
                                                     "RENZAN_RUN_DIR",
                                                     "RENZAN_CHECKPOINT_DIR",
                                                     "RENZAN_GRACE_SECONDS"};

// A NUL byte would cut off an argument or variable in exec().
bool HoldsNul(const std::string& text) { return text.find('\0') != std::string::npos; }

void DescribeEnvironment(ConfigFields& fields, std::map<std::string, std::string>* environment) {
  fields.Field("environment", environment,
               "of every worker, in addition to the launch contract's variables");
  for (const auto& [name, value] : *environment) {
    fields.Require(IsVariableName(name), "environment",
                   fmt::format("has the name '{}': letters, digits and '_' only", name));
    fields.Require(!IsContractVariable(name), "environment",
                   fmt::format("has {}, which the job system sets itself", name));
    fields.Require(!HoldsNul(value), "environment", fmt::format("has a NUL byte in {}", name));
  }
}

// "ALL", "NONE" or names of variables.
bool IsExported(const std::string& exported) {
  if (exported.empty() || exported == kExportAll || exported == kExportNone) return true;
  const std::vector<std::string> names = ExportedNames(exported);
  return std::all_of(names.begin(), names.end(), [](const std::string& name) {
    return IsVariableName(name) && name != kExportAll && name != kExportNone;
  });
}

// The program's name, with characters that names cannot contain replaced.
std::string DefaultName(const std::vector<std::string>& command) {
  std::string name = command[0].substr(command[0].find_last_of('/') + 1);
  for (char& c : name)
    if (!IsName(std::string("a") + c)) c = '-';
  name = name.substr(0, 63);
  return IsName(name) ? name : "job";
}

// "s3://bucket/prefix".
bool IsStorePrefix(const std::string& path) {
  constexpr std::string_view kScheme = "s3://";
  if (!path.starts_with(kScheme) || HoldsNul(path)) return false;
  const size_t slash = path.find('/', kScheme.size());
  return slash != std::string::npos && slash > kScheme.size() && slash + 1 < path.size();
}

}  // namespace

bool IsContractVariable(const std::string& name) {
  return std::find(kContractVariables.begin(), kContractVariables.end(), name) !=
         kContractVariables.end();
}

std::vector<std::string> ExportedNames(const std::string& names) {
  std::vector<std::string> list;
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find(',', begin), names.size());
    list.push_back(names.substr(begin, end - begin));
    begin = end + 1;
  }
  return list;
}

void JobSpec::PerWorker::Describe(ConfigFields& fields) {
  fields.Range("cpu", &cpu, 0.001, kMaxWorkerCores, "cores");
  fields.Field("memory", &memory, "such as 512MiB or 32GiB");
  fields.Require(TryParseMebibytes(memory).has_value(), "memory", kMemoryRule);
  fields.Range("gpu", &gpu, 0, kMaxCount, "whole devices");
  DescribeCounts(fields, "other", &other);
}

void JobSpec::Constraints::Describe(ConfigFields& fields) {
  DescribeLabels(fields, "required", &required, "labels that a node must have: {gpu_model: a100}");
  DescribeLabels(fields, "preferred", &preferred, "nodes with these labels are used first");
  fields.Field("topology", &topology,
               "a level, such as rack or host: all workers in one of its domains");
  fields.Require(topology.empty() || IsName(topology), "topology", kNameRule);
  fields.Field("topology_required", &topology_required, "otherwise preferred");
  fields.Require(!topology_required || !topology.empty(), "topology_required",
                 "needs a level: name it in topology");
  fields.Field("exclude_nodes", &exclude_nodes, "no worker runs on these nodes: [own-3]");
  for (const std::string& node : exclude_nodes)
    fields.Require(IsNodeName(node), "exclude_nodes",
                   fmt::format("has '{}', which cannot be a node's name", node));
}

void JobSpec::Checkpoint::Describe(ConfigFields& fields) {
  fields.Field("on_stop", &on_stop, "SIGTERM makes it checkpoint and exit 75");
  fields.Field("on_request", &on_request, "SIGUSR1 makes it checkpoint and continue");
  DescribeDuration(fields, "max_interval", &max_interval,
                   "longest time between checkpoints on spot nodes");
  fields.Require(TryParseMilliseconds(max_interval).value_or(1) > 0, "max_interval",
                 "must be more than 0");
  fields.Field(
      "directory", &directory,
      "RENZAN_CHECKPOINT_DIR: s3://bucket/prefix, or an absolute path; empty: in the job's "
      "directory (on Kubernetes: not set)");
  fields.Require(directory.empty() || directory.front() == '/' || in_store(), "directory",
                 "must be an absolute path or begin with s3://");
  fields.Require(!HoldsNul(directory), "directory", "has a NUL byte");
}

void JobSpec::Describe(ConfigFields& fields) {
  fields.Field("name", &name, "if empty, the program's name");
  fields.Require(name.empty() || IsName(name), "name", kNameRule);
  fields.Field("queue", &queue, "whose quota it counts against");
  fields.Require(IsName(queue), "queue", kNameRule);
  fields.Range("priority", &priority, -kMaxPriority, kMaxPriority, "higher goes first");
  fields.Field("replicas", &replicas, "workers that start together: 4, or 2..8 if elastic");
  const std::optional<spec::Range> workers = TryParseRange(replicas);
  fields.Require(workers && workers->min >= 1, "replicas", kReplicasRule);
  fields.Section("resources", &resources, "of one worker");
  fields.Section("constraints", &constraints, "which nodes, and how close to each other");
  fields.Section("checkpoint", &checkpoint, "how it saves its work");
  fields.Field("command", &command, "the program and its arguments");
  fields.Require(!command.empty() && !command[0].empty(), "command",
                 "must name a program, such as [renzan, train, kaggle.yaml]");
  fields.Require(std::none_of(command.begin(), command.end(), HoldsNul), "command",
                 "has a NUL byte in it");
  DescribeEnvironment(fields, &environment);
  fields.Field("export", &exported,
               "which variables of the submitter it gets, too: ALL, NONE or names such as "
               "PATH,LANG; if empty, ALL (on Kubernetes NONE)");
  fields.Require(IsExported(exported), "export",
                 "must be ALL, NONE or names of variables, separated by commas; values belong in "
                 "environment");
  fields.Field("working_directory", &working_directory, "if empty, where it was submitted");
  fields.Require(!HoldsNul(working_directory), "working_directory", "has a NUL byte in it");
  fields.Field(
      "artifacts", &artifacts,
      "a directory, relative to the working directory and without variables, that is copied "
      "to the job's when it ends");
  fields.Require(!HoldsNul(artifacts), "artifacts", "has a NUL byte in it");
  fields.Field("upload_to", &upload_to,
               "s3://bucket/prefix: its artifacts, run directory and output are copied there when "
               "it ends");
  fields.Require(upload_to.empty() || IsStorePrefix(upload_to), "upload_to",
                 "must be s3://bucket/prefix, of the job alone");
  DescribeDuration(fields, "grace", &grace, "between SIGTERM and SIGKILL");
  fields.Range("retries", &retries, 0, 1'000'000, "attempts after a failure");
  DescribeDuration(fields, "retry_backoff", &retry_backoff, "before the first retry; doubles");
  DescribeDuration(fields, "timeout", &timeout, "of its total running time; 0: none");
  fields.Field("preemptible", &preemptible, "may be stopped on behalf of another job");
  fields.Field("grand_challenge", &grand_challenge, "gets the whole cluster if it needs it");
}

int JobSpec::min_workers() const { return ParseReplicas(replicas).min; }
int JobSpec::max_workers() const { return ParseReplicas(replicas).max; }

int64_t JobSpec::grace_ms() const { return TryParseMilliseconds(grace).value_or(0); }
int64_t JobSpec::retry_backoff_ms() const {
  return TryParseMilliseconds(retry_backoff).value_or(0);
}
int64_t JobSpec::timeout_ms() const { return TryParseMilliseconds(timeout).value_or(0); }
int64_t JobSpec::max_checkpoint_interval_ms() const {
  return TryParseMilliseconds(checkpoint.max_interval).value_or(0);
}

JobSpec ReadJobSpec(std::string_view yaml, const std::string& name,
                    std::span<const std::string> overrides) {
  JobSpec spec;
  ReadConfigText(yaml, name, overrides, [&](ConfigFields& fields) { spec.Describe(fields); });
  if (spec.name.empty()) spec.name = DefaultName(spec.command);
  return spec;
}

std::string PrintJobSpec(JobSpec spec, bool with_docs) {
  return PrintConfig([&](ConfigFields& fields) { spec.Describe(fields); }, with_docs);
}

}  // namespace renzan::cluster::spec
