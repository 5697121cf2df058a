#pragma once

// One line of JSON for each decision, with its cause (causes.h). Why a job waits is logged only
// when it changes. Not thread-safe.

#include <map>
#include <string>

#include "renzan/cluster/record/cycle.h"

namespace renzan::cluster::record {

class DecisionLog {
 public:
  // The lines of the next cycle; empty if it decided nothing.
  std::string Lines(const CycleView& cycle);

 private:
  std::map<JobId, WaitReason> told_;  // for jobs that waited in the last cycle
};

}  // namespace renzan::cluster::record
