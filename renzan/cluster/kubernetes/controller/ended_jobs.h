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

  // What the run time of a job that is admitted now is expected to be. It is fixed then: this
  // leader has learned from other jobs than the next one.
  RunTimeQuantiles Predict(const GangJob& job);

  // Deletes those that ended so long ago; 0: none. Returns when to call it again: a second later if
  // a deletion failed.
  TimeMs DeleteOld(TimeMs keep_ms, TimeMs now, Requests& requests);

 private:
  struct Ended {
    std::string ns, name, uid;
    bool asked = false;  // to be deleted; a watch will show that
  };
  struct Lesson {
    JobTraits traits;
    TimeMs ran;
  };

  std::map<std::pair<TimeMs, std::string>, Ended> by_time_;  // and uid
  std::map<std::string, TimeMs> ended_at_;                   // by uid
  // Of those that ended before the first prediction, whatever the order in which they were listed.
  std::map<std::pair<TimeMs, std::string>, Lesson> lessons_;
  RunTimes run_times_;
};

}  // namespace renzan::cluster::kubernetes
