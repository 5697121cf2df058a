#pragma once

// A job from the command line: a file or a command, and flags that are shorthand for its keys.

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace renzan {

struct JobFlags {
  std::vector<std::string> words;  // a file, or a command after "--"
  std::vector<std::string> overrides;
  std::string name, queue, priority, replicas, gpus, cpus, memory, retries, timeout, artifacts;
  bool checkpoints = false;
};

void AddJobFlags(CLI::App& verb, JobFlags& flags);

// The validated body of a request for that job (POST /v1/jobs). `verb` must have been parsed.
// Throws Error kUsage, kNoInput or kConfig.
std::string JobRequest(const CLI::App& verb, const JobFlags& flags);

// The same for an earlier job as returned by GET /v1/jobs/ID, with the flags' overrides. Throws
// Error kNoPermission for a job of another user, whose specification is hidden.
std::string RepeatRequest(const std::string& shown_job, const JobFlags& flags);

// The job as YAML with every key and its documentation. Without a file or a command, a template.
// Throws like JobRequest().
std::string PrintedJob(const CLI::App& verb, const JobFlags& flags);

}  // namespace renzan
