#pragma once

// Watches how much is free on the file system of the state directory, and finds out which jobs use
// most of it when it is nearly full. Not thread-safe.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/local/controller/job_directories.h"
#include "renzan/cluster/local/supervisor/disk_use.h"

namespace renzan::cluster::local {

struct DiskRoom {
  int64_t bytes = 0;
  std::optional<int64_t> files;  // that can still be made; none: there is no bound
};
// Nothing if it cannot be determined.
std::optional<DiskRoom> RoomOn(const std::string& directory);

class DiskWatch {
 public:
  // It is nearly full when fewer than `keep_free` bytes are free; 0: never.
  DiskWatch(std::string state_dir, int64_t keep_free, const JobDirectories& directories,
            std::function<std::optional<DiskRoom>(const std::string&)> room = RoomOn);

  // Looks again, if it is time or at once. Logs when the disk becomes nearly full, and when it no
  // longer is.
  void Look(TimeMs now, bool at_once);
  // `active`: jobs run, which may write.
  TimeMs NextLook(bool active) const;

  bool nearly_full() const { return nearly_full_; }
  // What is wrong, and what can be done; "" unless it is nearly full.
  std::string Trouble() const;
  // Throws Error kIo if it is nearly full.
  void RequireRoom() const;
  // The jobs that use most, largest first; empty unless that is known.
  const std::vector<std::pair<JobId, int64_t>>& largest() const { return largest_; }

 private:
  std::string Lack() const;
  std::string Largest() const;
  void Measure(TimeMs now);
  void StartMeasuring();

  const std::string state_dir_;
  const int64_t keep_free_;
  const JobDirectories& directories_;
  const std::function<std::optional<DiskRoom>(const std::string&)> room_of_;
  DiskRoom room_;
  bool nearly_full_ = false;
  TimeMs looked_ = 0;
  // While it is nearly full:
  std::vector<JobId> to_measure_;
  std::optional<DiskUse> measuring_;  // the last of these
  std::map<JobId, int64_t> measured_;
  TimeMs measure_at_ = 0;
  std::vector<std::pair<JobId, int64_t>> largest_;
};

}  // namespace renzan::cluster::local
