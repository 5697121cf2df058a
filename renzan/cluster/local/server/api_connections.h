#pragma once

// Limits connections by user, so that no user can lock others out, and that root and the daemon's
// own user can always connect. Thread-safe.

#include <sys/types.h>

#include <chrono>
#include <map>
#include <mutex>

namespace renzan::cluster::local {

struct ConnectionLimits {
  int per_user = 64;
  int all_users = 768;     // together, without operators
  int per_operator = 128;  // root and the daemon's own user, each
  // Connections beyond these limits that get an error response; further ones are just closed.
  int refusals = 64, refusals_per_user = 8;

  int all() const { return all_users + 2 * per_operator + refusals; }
};

class ConnectionTable {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // kRefused: gets an error response. kNone: closed immediately, or about to be.
  enum class Admission { kServed, kRefused, kNone };

  // The uid of clients that could be anybody: all TCP clients before they show a token.
  static constexpr uid_t kAnybody = static_cast<uid_t>(-1);
  // That of the daemon's own user with a token, who could lock out the operator otherwise.
  static constexpr uid_t kOwnerByToken = static_cast<uid_t>(-2);

  ConnectionTable(const ConnectionLimits& limits, uid_t own_uid)
      : limits_(limits), own_uid_(own_uid) {}

  // Adds a connection of `uid`, identified by its descriptor, unless the result is kNone. If
  // necessary, a connection of kAnybody replaces the oldest such connection without a request.
  Admission Open(int fd, uid_t uid, Time now = {});
  // Whether Open() would serve it.
  bool HasRoomFor(uid_t uid);
  // A connection of anybody turns out to be one of `uid`, and counts as such from now on: it is
  // refused if that user has too many.
  Admission Identify(int fd, uid_t uid);
  // The headers of its first request have arrived.
  void Asked(int fd);
  // Call it before the descriptor is closed. Ignores unknown descriptors.
  void Close(int fd);

  Admission AdmissionOf(int fd);
  // Whether its user has so many connections that it should not be kept alive after a response.
  bool IsCrowded(int fd);
  // The connection limit of its user.
  int LimitFor(int fd);

 private:
  struct Peer {
    uid_t uid;
    Admission admission;
    Time opened;
    bool asked = false;
  };
  struct Count {
    int served = 0, refused = 0;
  };
  bool IsOperator(uid_t uid) const { return uid == 0 || uid == own_uid_; }
  int LimitOf(uid_t uid) const { return IsOperator(uid) ? limits_.per_operator : limits_.per_user; }
  const Peer& At(int fd) const;
  bool HasRoom(uid_t uid, const Count& count) const;
  Admission Admit(uid_t uid);
  void Forget(const Peer& peer);
  void GiveWay(uid_t uid);

  const ConnectionLimits limits_;
  const uid_t own_uid_;
  std::mutex mutex_;  // guards the members below
  std::map<int, Peer> peers_;
  std::map<uid_t, Count> counts_;  // of users that have any
  int users_served_ = 0, refused_ = 0;
};

}  // namespace renzan::cluster::local
