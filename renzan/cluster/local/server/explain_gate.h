#pragma once

// How many explanations are worked out at a time: each may take a core for seconds, and everybody
// may ask. One of each user, and a few of all; the others wait their turn. Thread-safe.

#include <sys/types.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>

namespace renzan::cluster::local {

class ExplainGate {
 public:
  explicit ExplainGate(size_t at_a_time = 2) : at_a_time_(at_a_time) {}

  // While it lives, the user's explanation may be worked out.
  class Place {
   public:
    Place(ExplainGate* gate, uid_t uid) : gate_(gate), uid_(uid) {}
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    // False: `cancelled` was true before it was this one's turn.
    explicit operator bool() const { return gate_ != nullptr; }

   private:
    ExplainGate* gate_;
    const uid_t uid_;
  };

  // Waits for a place. `cancelled` is asked again and again meanwhile.
  Place Enter(uid_t uid, const std::function<bool()>& cancelled);

 private:
  const size_t at_a_time_;
  std::mutex mutex_;  // guards the rest
  std::condition_variable left_;
  std::set<uid_t> inside_;
};

}  // namespace renzan::cluster::local
