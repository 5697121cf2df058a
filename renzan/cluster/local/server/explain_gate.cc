#include "renzan/cluster/local/server/explain_gate.h"

#include <chrono>

namespace renzan::cluster::local {
namespace {

// Nothing wakes us when a client goes away.
constexpr std::chrono::milliseconds kLookAgain(200);

}  // namespace

ExplainGate::Place ExplainGate::Enter(uid_t uid, const std::function<bool()>& cancelled) {
  std::unique_lock lock(mutex_);
  while (inside_.size() >= at_a_time_ || inside_.contains(uid)) {
    if (cancelled()) return {nullptr, uid};
    left_.wait_for(lock, kLookAgain);
  }
  inside_.insert(uid);
  return {this, uid};
}

ExplainGate::Place::~Place() {
  if (gate_ == nullptr) return;
  {
    const std::lock_guard lock(gate_->mutex_);
    gate_->inside_.erase(uid_);
  }
  gate_->left_.notify_all();
}

}  // namespace renzan::cluster::local
