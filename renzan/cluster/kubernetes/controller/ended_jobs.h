#pragma once

// GangJobs that have ended and still exist: what is learned from their run times, and when they are
// deleted. For one thread.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "renzan/cluster/core/predict/run_times.h"
#include "renzan/cluster/kubernetes/controller/requests.h"
#include "renzan/cluster/kubernetes/objects/gang_job.h"

namespace renzan::cluster::kubernetes {

class EndedJobs {
 public:
  void Put(const GangJob& job);
  void Remove(const std::string& uid);

  // The predicted run time of a job that is being admitted. It is fixed at admission, because the
  // next leader has learned from other jobs.
  RunTimeQuantiles Predict(const GangJob& job);

  // Deletes jobs that ended more than `keep_ms` ago; 0: none. Returns when to call it again: a
  // second later if a deletion failed.
  TimeMs DeleteOld(TimeMs keep_ms, TimeMs now, Requests& requests);

 private:
  struct Ended {
    std::string ns, name, uid;
    bool asked = false;  // deletion requested; a watch will show it
  };
  struct Lesson {
    JobTraits traits;
    TimeMs ran;
  };

  std::map<std::pair<TimeMs, std::string>, Ended> by_time_;  // and uid
  std::map<std::string, TimeMs> ended_at_;                   // by uid
  // For jobs that ended before the first prediction, in whatever order they were listed.
  std::map<std::pair<TimeMs, std::string>, Lesson> lessons_;
  RunTimes run_times_;
};

}  // namespace renzan::cluster::kubernetes
