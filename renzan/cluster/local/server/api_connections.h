#pragma once

// Who has how many connections to the daemon, so that nobody's keep others out: each user may have
// so many, and whatever users do, there is room for root and the daemon's own user. Thread-safe.

#include <sys/types.h>

#include <map>
#include <mutex>

namespace renzan::cluster::local {

struct ConnectionLimits {
  int per_user = 64;
  int users_together = 768;
  int per_operator = 128;  // of root and of the daemon's own user each
  // More, of all together, that are answered only with why they are not served. What comes on top
  // of that is closed without a word.
  int refusals = 64, refusals_per_user = 8;

  int all() const { return users_together + 2 * per_operator + refusals; }
};

class ConnectionBook {
 public:
  enum class Place { kServed, kRefused, kNone };

  ConnectionBook(const ConnectionLimits& limits, uid_t own_uid)
      : limits_(limits), own_uid_(own_uid) {}

  // A connection of `uid` is there, known by its descriptor. kNone: it is to be closed, and is not
  // counted.
  Place Open(int fd, uid_t uid);
  // Before the descriptor is closed. Nothing for one that is not known.
  void Close(int fd);

  // Of one that is known: kServed or kRefused.
  Place PlaceOf(int fd);
  // Its user has so many that none should be kept open for a next request.
  bool IsCrowded(int fd);
  // How many its user may have.
  int LimitFor(int fd);

 private:
  struct Peer {
    uid_t uid;
    Place place;
  };
  struct Count {
    int served = 0, refused = 0;
  };
  bool IsOperator(uid_t uid) const { return uid == 0 || uid == own_uid_; }
  int LimitOf(uid_t uid) const { return IsOperator(uid) ? limits_.per_operator : limits_.per_user; }
  const Peer& At(int fd) const;

  const ConnectionLimits limits_;
  const uid_t own_uid_;
  std::mutex mutex_;  // guards the rest
  std::map<int, Peer> peers_;
  std::map<uid_t, Count> counts_;  // of those who have any
  int users_served_ = 0, refused_ = 0;
};

}  // namespace renzan::cluster::local
