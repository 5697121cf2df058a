#pragma once

// What will be submitted next, as far as a snapshot tells: jobs like those submitted lately. Pure
// functions.

#include <vector>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster {

// A snapshot has no ended jobs. So each of them that is still there also stands for
// those like it that have ended meanwhile: if a quarter of such jobs run for as long as it has, for
// three more. (This is the Horvitz-Thompson estimator, with weights of at most 10.)
class Submissions {
 public:
  // Of jobs that were submitted for so long before the snapshot.
  Submissions(const Snapshot& snapshot, TimeMs lately);

  double per_hour() const;
  // A job as it would be submitted again, drawn by `share` in [0, 1). There must be any.
  const Job& Draw(double share) const;

 private:
  TimeMs lately_;
  std::vector<Job> jobs_;
  std::vector<double> weights_;  // of all jobs up to and including this one
};

}  // namespace renzan::cluster
