#pragma once

// What the daemon reads from a job's specification, in addition to what the scheduler sees. Pure.

#include <map>
#include <string>

#include "renzan/cluster/spec/job_spec.h"

namespace renzan::cluster::local {

// What is copied when the job has ended.
struct Outputs {
  std::string artifacts;                           // an absolute path; empty: none
  std::string upload_to;                           // empty: nowhere
  std::map<std::string, std::string> environment;  // of the job
  bool empty() const { return artifacts.empty() && upload_to.empty(); }
};
Outputs OutputsOf(const spec::JobSpec& spec);
// Where the job's checkpoints are; `directory`: the job's own.
std::string CheckpointDirectoryOf(const spec::JobSpec& spec, const std::string& directory);

}  // namespace renzan::cluster::local
