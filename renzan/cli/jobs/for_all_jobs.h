#pragma once

// Verbs that do something to each of some jobs.

#include <functional>
#include <string>

#include "renzan/cli/cluster/cluster_access.h"
#include "renzan/cli/jobs/job_choice.h"

namespace CLI {
class App;
}

namespace renzan {

struct ManyJobsFlags {
  JobChoice jobs;
  ClusterFlags cluster;
  bool json = false;
};
void AddManyJobsFlags(CLI::App& verb, ManyJobsFlags& flags);

struct JobOperation {
  Applies applies;
  // Does it to one job. Returns what --json prints of it.
  std::function<Document(cluster::Backend& backend, const std::string& job)> act;
  std::function<void(const Document& done)> print;
};

// A job that it cannot be done to does not keep the others from it; the first such error is the
// exit code. One that no longer matches is no error.
void ForAllJobs(const ManyJobsFlags& flags, const JobOperation& operation);

}  // namespace renzan
