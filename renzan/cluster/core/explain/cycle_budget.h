#pragma once

// How many scheduling cycles a question may cost. Everybody can ask, a cycle of a large cluster
// takes long, and "what would happen if" is answered by trying. For one thread; the callback may
// look at what other threads change.

#include <functional>
#include <utility>

namespace renzan::cluster {

class CycleBudget {
 public:
  // `cancelled`: nobody waits for the answer any more.
  explicit CycleBudget(int cycles, std::function<bool()> cancelled = {})
      : left_(cycles), cancelled_(std::move(cancelled)) {}

  // One more cycle. False: there is none left, or nobody waits; then what is known so far must do.
  bool Spend() {
    if (left_ > 0 && cancelled_ && cancelled_()) left_ = 0;
    if (left_ <= 0) {
      exhausted_ = true;
      return false;
    }
    --left_;
    return true;
  }

  // Spend() was asked for more than there was.
  bool exhausted() const { return exhausted_; }

 private:
  int left_;
  std::function<bool()> cancelled_;
  bool exhausted_ = false;
};

}  // namespace renzan::cluster
