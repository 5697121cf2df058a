#pragma once

// Limits the share of retries among a process's requests: when a store is in trouble, clients that
// keep retrying keep it there. Every retry costs one token, every success returns a part of one;
// without tokens an error is final. Thread-safe.

#include <algorithm>
#include <mutex>

namespace renzan::s3 {

class RetryBudget {
 public:
  // Enough for eight transfers to bridge a restart of two minutes.
  static constexpr double kTokens = 300;
  static constexpr double kPerSuccess = 0.2;

  bool TakeOne() {
    const std::lock_guard lock(mutex_);
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }
  void OnSuccess() {
    const std::lock_guard lock(mutex_);
    tokens_ = std::min(kTokens, tokens_ + kPerSuccess);
  }

 private:
  std::mutex mutex_;
  double tokens_ = kTokens;
};

}  // namespace renzan::s3
