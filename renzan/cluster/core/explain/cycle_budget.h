#pragma once

// Limits how many scheduling cycles one request may run. Explanations try changes by running whole
// cycles, which are slow on a large cluster, and every user may ask. For one thread; the callback
// may read state that other threads change.

#include <functional>
#include <utility>

namespace renzan::cluster {

class CycleBudget {
 public:
  // `cancelled`: whether the requester has gone away.
  explicit CycleBudget(int cycles, std::function<bool()> cancelled = {})
      : left_(cycles), cancelled_(std::move(cancelled)) {}

  // Takes one cycle. False: none is left, or the request was cancelled.
  bool Spend() {
    if (left_ > 0 && cancelled_ && cancelled_()) left_ = 0;
    if (left_ <= 0) {
      exhausted_ = true;
      return false;
    }
    --left_;
    return true;
  }

  int left() const { return left_; }
  // Whether Spend() has returned false.
  bool exhausted() const { return exhausted_; }

 private:
  int left_;
  std::function<bool()> cancelled_;
  bool exhausted_ = false;
};

}  // namespace renzan::cluster
