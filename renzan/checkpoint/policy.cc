#include "renzan/checkpoint/policy.h"

namespace renzan {

CheckpointKind NextKind(const CheckpointCosts& costs) {
  if (!costs.has_base || costs.incremental_bytes >= costs.full_bytes) return CheckpointKind::kFull;
  const double average = static_cast<double>(costs.base_bytes + costs.increment_bytes) /
                         static_cast<double>(costs.increments + 1);
  return static_cast<double>(costs.incremental_bytes) > average ? CheckpointKind::kFull
                                                                : CheckpointKind::kIncremental;
}

CheckpointKind KindForDeadline(CheckpointKind planned, double full_seconds,
                               double incremental_seconds, double grace_seconds) {
  constexpr double kShare = 0.7;
  const double seconds = planned == CheckpointKind::kFull ? full_seconds : incremental_seconds;
  if (seconds <= kShare * grace_seconds) return planned;
  return full_seconds <= incremental_seconds ? CheckpointKind::kFull : CheckpointKind::kIncremental;
}

}  // namespace renzan
