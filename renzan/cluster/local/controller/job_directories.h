#pragma once

// Where the daemon keeps the files of jobs: STATE/jobs/JOB/attempt-N.

#include <optional>
#include <string>

#include "renzan/cluster/local/store/records.h"

namespace renzan::cluster::local {

class JobDirectories {
 public:
  explicit JobDirectories(const std::string& state_dir) : root_(state_dir + "/jobs") {}

  const std::string& root() const { return root_; }
  std::string Of(JobId job) const;
  std::string OfAttempt(JobId job, int attempt) const;

  // Creates the job's directory and those below it that its user writes to. `manifest` is written
  // too, before the first attempt.
  void Create(const JobRecord& job, const std::optional<std::string>& manifest) const;

  // Of a job that has ended: removes what only its supervisors and the daemon read, and directories
  // that it has left empty.
  void Trim(JobId job, int attempts) const;
  // Whether it has left nothing but its workers' output (or not even that).
  bool HasOnlyOutput(JobId job) const;

 private:
  std::string root_;
};

}  // namespace renzan::cluster::local
