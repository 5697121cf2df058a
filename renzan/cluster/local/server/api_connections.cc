#include "renzan/cluster/local/server/api_connections.h"

#include "renzan/base/error.h"

namespace renzan::cluster::local {

ConnectionBook::Place ConnectionBook::Open(int fd, uid_t uid) {
  const std::lock_guard lock(mutex_);
  const auto at = counts_.find(uid);
  Count count = at == counts_.end() ? Count() : at->second;
  const bool is_operator = IsOperator(uid);
  Place place = Place::kNone;
  if (count.served < LimitOf(uid) && (is_operator || users_served_ < limits_.users_together)) {
    place = Place::kServed;
    ++count.served;
    users_served_ += is_operator ? 0 : 1;
  } else if (count.refused < limits_.refusals_per_user && refused_ < limits_.refusals) {
    place = Place::kRefused;
    ++count.refused;
    ++refused_;
  } else {
    return place;
  }
  counts_[uid] = count;
  const bool is_new = peers_.insert({fd, {uid, place}}).second;
  CHECK_MSG(is_new, "descriptor {} is that of two connections", fd);
  return place;
}

void ConnectionBook::Close(int fd) {
  const std::lock_guard lock(mutex_);
  const auto peer = peers_.find(fd);
  if (peer == peers_.end()) return;
  const auto count = counts_.find(peer->second.uid);
  if (peer->second.place == Place::kServed) {
    --count->second.served;
    users_served_ -= IsOperator(peer->second.uid) ? 0 : 1;
  } else {
    --count->second.refused;
    --refused_;
  }
  if (count->second.served + count->second.refused == 0) counts_.erase(count);
  peers_.erase(peer);
}

const ConnectionBook::Peer& ConnectionBook::At(int fd) const {
  const auto at = peers_.find(fd);
  CHECK_MSG(at != peers_.end(), "descriptor {} is no connection", fd);
  return at->second;
}

ConnectionBook::Place ConnectionBook::PlaceOf(int fd) {
  const std::lock_guard lock(mutex_);
  return At(fd).place;
}

bool ConnectionBook::IsCrowded(int fd) {
  const std::lock_guard lock(mutex_);
  const uid_t uid = At(fd).uid;
  return counts_.at(uid).served * 2 > LimitOf(uid);
}

int ConnectionBook::LimitFor(int fd) {
  const std::lock_guard lock(mutex_);
  return LimitOf(At(fd).uid);
}

}  // namespace renzan::cluster::local
