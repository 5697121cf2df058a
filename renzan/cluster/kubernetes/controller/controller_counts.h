#pragma once

// What a leader has done since it began to lead, as numbers for operators. Not thread-safe.

#include <array>
#include <map>
#include <string>

#include "renzan/cluster/core/decisions.h"
#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/kubernetes/controller/histogram.h"

namespace renzan::cluster::kubernetes {

// Classes of jobs by the fewest GPUs that all their workers need together.
inline constexpr std::array kSizeClasses = {"0", "1", "2-7", "8-15", "16+"};
size_t SizeClassOf(const Snapshot& snapshot, const Job& job);

class ControllerCounts {
 public:
  ControllerCounts();

  // `snapshot`: before the decisions are carried out.
  void CountCycle(const Snapshot& snapshot, const Decisions& decisions, double seconds);
  // The cluster has been as in the snapshot for `duration`.
  void CountUse(const Snapshot& snapshot, TimeMs duration);

  const Histogram& cycle_seconds() const { return cycle_seconds_; }
  const std::map<std::string, int64_t>& decisions() const { return decisions_; }  // by kind
  const std::map<std::string, int64_t>& stops() const { return stops_; }          // by reason
  // How long jobs had waited when they started, by class.
  const std::array<Histogram, kSizeClasses.size()>& waited_seconds() const { return waited_; }
  const std::map<int, double>& gpu_seconds() const { return gpu_seconds_; }  // by queue
  const std::map<int, double>& cost() const { return cost_; }                // by priced pool

 private:
  Histogram cycle_seconds_;
  std::map<std::string, int64_t> decisions_, stops_;
  std::array<Histogram, kSizeClasses.size()> waited_;
  std::map<int, double> gpu_seconds_, cost_;
};

}  // namespace renzan::cluster::kubernetes
