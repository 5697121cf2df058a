#include "renzan/cluster/local/controller/pool_observer.h"

#include <algorithm>
#include <utility>

#include "renzan/base/log.h"
#include "renzan/cluster/local/controller/cluster_state.h"

namespace renzan::cluster::local {

void PoolObserver::Recover() {
  for (const Pool& pool : snapshot_.pools)
    pools_.push_back({.stated_per_hour = pool.interruptions_per_hour, .seen = {.name = pool.name}});
  for (const PoolRecord& record : store_.Pools())
    for (PoolHistory& pool : pools_)
      if (pool.seen.name == record.name) pool.seen = record;
  observed_until_ = snapshot_.now;
  Observe();
}

void PoolObserver::Observe() {
  const TimeMs now = std::max(NowMs(clock_), observed_until_);
  const TimeMs passed = now - std::exchange(observed_until_, now);
  for (const Node& node : snapshot_.nodes)
    if (node.pool >= 0 && IsThere(node.state)) pools_[node.pool].seen.node_ms += passed;
  for (size_t pool = 0; pool < pools_.size(); ++pool)
    snapshot_.pools[pool].interruptions_per_hour = InterruptionsPerHour(pools_[pool]);
}

void PoolObserver::CountInterruption(int node) {
  const int pool = snapshot_.nodes[node].pool;
  if (pool < 0) return;
  ++pools_[pool].seen.interruptions;
  Observe();
  try {
    store_.Transact([&] { store_.Put(pools_[pool].seen); });
  } catch (const Error& error) {
    if (store_.corruption()) throw;
    LogWarning("pool {}: an interruption could not be saved yet: {}", pools_[pool].seen.name,
               error.what());
  }
}

void PoolObserver::Put() {
  Observe();
  for (const PoolHistory& pool : pools_)
    if (pool.seen.node_ms > 0) store_.Put(pool.seen);
}

const std::vector<PoolHistory>& PoolObserver::Histories() {
  Observe();
  return pools_;
}

void PoolObserver::ClockWentBack(TimeMs now) { observed_until_ = std::min(observed_until_, now); }

}  // namespace renzan::cluster::local
