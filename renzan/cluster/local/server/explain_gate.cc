#include "renzan/cluster/local/server/explain_gate.h"

#include <chrono>

namespace renzan::cluster::local {
namespace {

// A client that disconnects does not wake us.
constexpr std::chrono::milliseconds kPollInterval(200);

}  // namespace

ExplainGate::Slot ExplainGate::Enter(uid_t uid, const std::function<bool()>& cancelled) {
  std::unique_lock lock(mutex_);
  while (running_.size() >= max_concurrent_ || running_.contains(uid)) {
    if (cancelled()) return {nullptr, uid};
    freed_.wait_for(lock, kPollInterval);
  }
  running_.insert(uid);
  return {this, uid};
}

ExplainGate::Slot::~Slot() {
  if (gate_ == nullptr) return;
  {
    const std::lock_guard lock(gate_->mutex_);
    gate_->running_.erase(uid_);
  }
  gate_->freed_.notify_all();
}

}  // namespace renzan::cluster::local
