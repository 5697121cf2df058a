#pragma once

// A job from the command line: a file or a command, and flags that are shorthand for its keys.

#include <string>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/cluster/backend/backend.h"

namespace CLI {
class App;
}

namespace renzan {

struct JobFlags {
  std::vector<std::string> words;  // a file, or a command after "--"
  std::vector<std::string> overrides;
  std::string name, queue, priority, replicas, gpus, cpus, memory, retries, timeout, artifacts,
      exclude, exported;
  std::string image, pod_template;  // Kubernetes
  bool checkpoints = false;
};

void AddJobFlags(CLI::App& verb, JobFlags& flags);

// That job. `verb` must have been parsed. Throws Error kUsage or kNoInput.
cluster::Submission SubmissionOf(const CLI::App& verb, const JobFlags& flags);

// An earlier job with the flags' overrides.
cluster::Submission RepeatedSubmission(cluster::JobText earlier, const JobFlags& flags);

// Throws `error`, of submitting a job, about the flag that was typed rather than its key.
[[noreturn]] void RethrowAsTyped(const Error& error, const JobFlags& flags);

// As JSON, to stdout.
void PrintSubmitted(const cluster::Submitted& submitted);

// The job as YAML with every key and its documentation. Without a file or a command, a template.
// Throws Error kUsage, kNoInput or kConfig.
std::string PrintedJob(const CLI::App& verb, const JobFlags& flags);

}  // namespace renzan
