#pragma once

// Which nodes fail the jobs that start on them. A job that fails soon after its start may be at
// fault itself, so one user's failures count only if these jobs, or as many others of that user
// that started at the same time, ran elsewhere. Plain memory: the environment stores the facts. Not
// thread-safe.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// A job failed on a node soon after its start (FailedEarlyOn); once for each job and node.
struct EarlyFailure {
  JobId job = 0;
  std::string node, user;
  TimeMs time = 0;             // 0: the node has been absolved of it
  bool counts = true;          // against the node
  bool ran_elsewhere = false;  // afterwards: it was not the job's own fault
  TimeMs started = 0;          // not stored; 0: not known
  bool operator==(const EarlyFailure&) const = default;
};

class Suspicion {
 public:
  // Failures of `jobs` jobs make a node suspected.
  explicit Suspicion(int jobs = 3) : jobs_(jobs) {}

  // A fact from before a restart.
  void Restore(const EarlyFailure& failure);
  // These return the facts that are new or have changed.
  // A job that has failed so on several nodes counts against none of them.
  std::vector<EarlyFailure> Failed(EarlyFailure failure);
  // The job has ended well on these nodes, or runs there for long: they have worked since it
  // started, and the nodes where it failed are at fault.
  std::vector<EarlyFailure> RanWell(JobId job, const std::vector<std::string>& nodes,
                                    TimeMs started);
  // The job, started at that time, has outlasted by far those that fail, or has ended well.
  void Survived(JobId job, const std::string& user, const std::string& node, TimeMs started);
  // What has failed there never counts against the node again. Jobs that failed there still avoid
  // it.
  std::vector<EarlyFailure> Absolve(const std::string& node);

  // The node is another machine, or has been repaired.
  void ForgetNode(const std::string& node);
  void ForgetJob(JobId job);

  // "3 jobs of 2 users failed there soon after their start"; "" if it is not suspected. Looks at
  // the last hour.
  std::string WhySuspected(const std::string& node, TimeMs now) const;

  // Nodes on which as many jobs of the user failed in the last hour, and none that started there at
  // the same time or later has survived. A job that failed on several nodes may be at fault itself,
  // and counts for none. Sorted by name.
  std::vector<FailingNode> FailingFor(const std::string& user, TimeMs now) const;

  bool Knows(JobId job) const;
  // Jobs whose last failure was more than an hour ago.
  std::vector<JobId> OldJobs(TimeMs now) const;

 private:
  const int jobs_;
  struct Survivor {
    std::string user;
    TimeMs started = 0;
  };
  bool IsJobsOwnFault(const EarlyFailure& failure) const;
  int SurvivorsBeside(const std::string& node, const std::string& user, TimeMs since) const;

  std::map<std::pair<JobId, std::string>, EarlyFailure> failures_;  // by job and node
  std::map<std::pair<JobId, std::string>, Survivor> survivors_;     // by job and node
};

}  // namespace renzan::cluster
