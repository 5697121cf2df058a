#include "renzan/cluster/local/server/api_connections.h"

#include <sys/socket.h>

#include <algorithm>

#include "renzan/base/error.h"

namespace renzan::cluster::local {

ConnectionTable::Admission ConnectionTable::Open(int fd, uid_t uid, Time now) {
  const std::lock_guard lock(mutex_);
  if (uid == kAnybody) GiveWay(uid);
  const Admission admission = Admit(uid);
  if (admission == Admission::kNone) return admission;
  const bool is_new = peers_.insert({fd, {uid, admission, now}}).second;
  CHECK_MSG(is_new, "descriptor {} belongs to two connections", fd);
  return admission;
}

// If all of the user's connections are taken, the oldest one without a request ends.
void ConnectionTable::GiveWay(uid_t uid) {
  const auto count = counts_.find(uid);
  if (count == counts_.end() || count->second.served < LimitOf(uid)) return;
  auto oldest = peers_.end();
  for (auto peer = peers_.begin(); peer != peers_.end(); ++peer) {
    const Peer& each = peer->second;
    if (each.uid == uid && !each.asked && each.admission == Admission::kServed &&
        (oldest == peers_.end() || each.opened < oldest->second.opened))
      oldest = peer;
  }
  if (oldest == peers_.end()) return;
  ::shutdown(oldest->first, SHUT_RDWR);
  Forget(oldest->second);
  oldest->second.admission = Admission::kNone;
}

bool ConnectionTable::HasRoom(uid_t uid, const Count& count) const {
  return count.served < LimitOf(uid) && (IsOperator(uid) || users_served_ < limits_.all_users);
}

// A connection of anybody replaces another one.
bool ConnectionTable::HasRoomFor(uid_t uid) {
  const std::lock_guard lock(mutex_);
  const auto at = counts_.find(uid);
  return uid == kAnybody || HasRoom(uid, at == counts_.end() ? Count() : at->second);
}

ConnectionTable::Admission ConnectionTable::Admit(uid_t uid) {
  const auto at = counts_.find(uid);
  Count count = at == counts_.end() ? Count() : at->second;
  Admission admission = Admission::kNone;
  if (HasRoom(uid, count)) {
    admission = Admission::kServed;
    ++count.served;
    users_served_ += IsOperator(uid) ? 0 : 1;
  } else if (count.refused < limits_.refusals_per_user && refused_ < limits_.refusals) {
    admission = Admission::kRefused;
    ++count.refused;
    ++refused_;
  } else {
    return admission;
  }
  counts_[uid] = count;
  return admission;
}

ConnectionTable::Admission ConnectionTable::Identify(int fd, uid_t uid) {
  const std::lock_guard lock(mutex_);
  const auto at = peers_.find(fd);
  if (at == peers_.end()) return Admission::kNone;
  Peer& peer = at->second;
  if (peer.uid == uid || peer.admission == Admission::kNone) return peer.admission;
  Forget(peer);
  peer.uid = uid;
  peer.admission = Admit(uid);
  return peer.admission;
}

void ConnectionTable::Asked(int fd) {
  const std::lock_guard lock(mutex_);
  if (const auto peer = peers_.find(fd); peer != peers_.end()) peer->second.asked = true;
}

void ConnectionTable::Close(int fd) {
  const std::lock_guard lock(mutex_);
  const auto peer = peers_.find(fd);
  if (peer == peers_.end()) return;
  Forget(peer->second);
  peers_.erase(peer);
}

// The connection no longer counts.
void ConnectionTable::Forget(const Peer& peer) {
  if (peer.admission == Admission::kNone) return;
  const auto count = counts_.find(peer.uid);
  if (peer.admission == Admission::kServed) {
    --count->second.served;
    users_served_ -= IsOperator(peer.uid) ? 0 : 1;
  } else {
    --count->second.refused;
    --refused_;
  }
  if (count->second.served + count->second.refused == 0) counts_.erase(count);
}

const ConnectionTable::Peer& ConnectionTable::At(int fd) const {
  const auto at = peers_.find(fd);
  CHECK_MSG(at != peers_.end(), "descriptor {} is not a connection", fd);
  return at->second;
}

ConnectionTable::Admission ConnectionTable::AdmissionOf(int fd) {
  const std::lock_guard lock(mutex_);
  return At(fd).admission;
}

bool ConnectionTable::IsCrowded(int fd) {
  const std::lock_guard lock(mutex_);
  const uid_t uid = At(fd).uid;
  return counts_.at(uid).served * 2 > LimitOf(uid);
}

int ConnectionTable::LimitFor(int fd) {
  const std::lock_guard lock(mutex_);
  return LimitOf(At(fd).uid);
}

}  // namespace renzan::cluster::local
