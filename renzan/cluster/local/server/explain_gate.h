#pragma once

// Limits concurrent explanations, each of which can keep a core busy for seconds: one per user, and
// a few in total. Others wait. Thread-safe.

#include <sys/types.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>

namespace renzan::cluster::local {

class ExplainGate {
 public:
  explicit ExplainGate(size_t max_concurrent = 2) : max_concurrent_(max_concurrent) {}

  // The user's explanation may run while it exists.
  class Slot {
   public:
    Slot(ExplainGate* gate, uid_t uid) : gate_(gate), uid_(uid) {}
    ~Slot();
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    // False if `cancelled` became true while waiting.
    explicit operator bool() const { return gate_ != nullptr; }

   private:
    ExplainGate* gate_;
    const uid_t uid_;
  };

  // Waits for a slot, and polls `cancelled` meanwhile.
  Slot Enter(uid_t uid, const std::function<bool()>& cancelled);

 private:
  const size_t max_concurrent_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable freed_;
  std::set<uid_t> running_;
};

}  // namespace renzan::cluster::local
