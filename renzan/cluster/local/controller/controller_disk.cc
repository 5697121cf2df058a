// Controller, when the disk is nearly full.

#include <fcntl.h>
#include <sys/stat.h>

#include "renzan/base/log.h"
#include "renzan/base/process/descriptor.h"
#include "renzan/cluster/local/controller/controller.h"

namespace renzan::cluster::local {
namespace {

constexpr TimeMs kBetweenReservationsMs = 10'000;

}  // namespace

// So that it can say what happens on a full disk. Without effect if that fails.
void Controller::ReserveLogRoom() const {
  constexpr int64_t kBytes = 64 << 10;
  const Descriptor log(
      ::open((options_.state_dir + "/daemon.log").c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat about {};
  if (!log || ::fstat(log.get(), &about) != 0) return;
  if (::fallocate(log.get(), FALLOC_FL_KEEP_SIZE, about.st_size, kBytes) != 0) return;
}

void Controller::WatchDisk(TimeMs now, bool at_once) {
  const bool before = disk_.nearly_full();
  disk_.Look(now, at_once);
  if (disk_.nearly_full() != before) state_.needs_scheduling = true;
  if (!options_.reserve_room) return;
  if (now >= room_reserved_ && now < room_reserved_ + kBetweenReservationsMs) return;
  room_reserved_ = now;
  ReserveLogRoom();
  ReserveRoom();
}

// What was used while the disk was full, or by the growth of the history.
void Controller::ReserveRoom() {
  std::string why;
  try {
    store_.ReserveRoom();
  } catch (const Error& error) {
    if (store_.corruption()) throw;
    why = error.what();
  }
  if (why != no_room_ && !why.empty())
    LogWarning("nothing can be recorded if jobs fill the disk: {}", why);
  no_room_ = why;
}

}  // namespace renzan::cluster::local
