#pragma once

// Limits how much of what a process sends are retries: when a store is in trouble, clients that all
// keep asking keep it there. Every retry costs one token, every success gives a part of one back;
// without tokens an error is final. Thread-safe.

#include <algorithm>
#include <mutex>

namespace renzan::s3 {

class RetryBudget {
 public:
  // As many as eight transfers need to bridge a restart of two minutes.
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
