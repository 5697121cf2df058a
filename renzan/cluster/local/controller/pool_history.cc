#include "renzan/cluster/local/controller/pool_history.h"

namespace renzan::cluster::local {
namespace {

constexpr double kMsPerHour = 3'600'000;
constexpr double kQuietHours = 24;

}  // namespace

double InterruptionsPerHour(const PoolHistory& pool) {
  const double hours = static_cast<double>(pool.seen.node_ms) / kMsPerHour;
  const double seen = static_cast<double>(pool.seen.interruptions);
  if (pool.stated_per_hour <= 0) return seen / (kQuietHours + hours);
  return (1 + seen) / (1 / pool.stated_per_hour + hours);
}

}  // namespace renzan::cluster::local
