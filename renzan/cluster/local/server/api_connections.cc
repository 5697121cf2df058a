#include "renzan/cluster/local/server/api_connections.h"

#include "renzan/base/error.h"

namespace renzan::cluster::local {

ConnectionTable::Admission ConnectionTable::Open(int fd, uid_t uid) {
  const std::lock_guard lock(mutex_);
  const auto at = counts_.find(uid);
  Count count = at == counts_.end() ? Count() : at->second;
  const bool is_operator = IsOperator(uid);
  Admission admission = Admission::kNone;
  if (count.served < LimitOf(uid) && (is_operator || users_served_ < limits_.all_users)) {
    admission = Admission::kServed;
    ++count.served;
    users_served_ += is_operator ? 0 : 1;
  } else if (count.refused < limits_.refusals_per_user && refused_ < limits_.refusals) {
    admission = Admission::kRefused;
    ++count.refused;
    ++refused_;
  } else {
    return admission;
  }
  counts_[uid] = count;
  const bool is_new = peers_.insert({fd, {uid, admission}}).second;
  CHECK_MSG(is_new, "descriptor {} belongs to two connections", fd);
  return admission;
}

void ConnectionTable::Close(int fd) {
  const std::lock_guard lock(mutex_);
  const auto peer = peers_.find(fd);
  if (peer == peers_.end()) return;
  const auto count = counts_.find(peer->second.uid);
  if (peer->second.admission == Admission::kServed) {
    --count->second.served;
    users_served_ -= IsOperator(peer->second.uid) ? 0 : 1;
  } else {
    --count->second.refused;
    --refused_;
  }
  if (count->second.served + count->second.refused == 0) counts_.erase(count);
  peers_.erase(peer);
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
