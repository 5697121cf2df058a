#pragma once

// STATE/inherited/JOB.json: what a job that has not ended takes over from its submitter
// (spec/inherited.h). The environment may hold secrets, so it is in no record of the job, only the
// daemon's user can read the file, and it is removed when the job ends.

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/spec/inherited.h"

namespace renzan::cluster::local {

class InheritedFiles {
 public:
  explicit InheritedFiles(const std::string& state_dir) : directory_(state_dir + "/inherited") {}

  // Creates the directory, and removes the files of all other jobs: a daemon may have been killed
  // before it did. Call it first. Throws Error kCantCreate or kIo.
  void KeepOnly(const std::set<JobId>& jobs) const;

  // Durable when it returns. Throws Error kIo.
  void Save(JobId job, const spec::Inherited& inherited) const;
  void Remove(JobId job) const;

  // Empty for a job without one: it was submitted to an earlier version.
  std::string PathOf(JobId job) const;
  int64_t BytesOf(JobId job) const;
  // Without a file: none. Throws Error kIo or kData.
  std::map<std::string, std::string> EnvironmentOf(JobId job) const;

 private:
  std::string Path(JobId job) const;

  std::string directory_;
};

}  // namespace renzan::cluster::local
