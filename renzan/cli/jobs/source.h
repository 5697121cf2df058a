#pragma once

// A job as a command line says it: a file, a command, flags that are shorthand for its keys.

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace renzan {

struct JobFlags {
  std::vector<std::string> words;  // the file's path, or a command after "--"
  std::vector<std::string> overrides;
  std::string name, queue, priority, replicas, gpus, cpus, memory, retries, timeout, artifacts;
  bool checkpoints = false;
};

void AddJobFlags(CLI::App& verb, JobFlags& flags);

// The body of a request about that job (POST /v1/jobs), already found to be well formed. `verb` has
// been parsed. Throws Error kUsage, kNoInput or kConfig.
std::string JobRequest(const CLI::App& verb, const JobFlags& flags);

// Likewise for a job that was submitted before, as the daemon shows it (GET /v1/jobs/ID), with the
// flags' overrides. Throws Error kNoPermission for somebody else's, whose specification is not
// shown.
std::string RepeatRequest(const std::string& shown_job, const JobFlags& flags);

// The job as it would be submitted: YAML with every key, what it means and its default. Without a
// file or a command it is one to be filled in. Throws as JobRequest().
std::string PrintedJob(const CLI::App& verb, const JobFlags& flags);

}  // namespace renzan
