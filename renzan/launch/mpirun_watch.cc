#include "renzan/launch/mpirun_watch.h"

#include <algorithm>
#include <vector>

#include "renzan/base/process/process_table.h"

namespace renzan {

using std::chrono::steady_clock;

bool MpirunWatch::IsHung(pid_t pid) {
  const auto now = steady_clock::now();
  const auto seconds_since = [&](steady_clock::time_point moment) {
    return std::chrono::duration<double>(now - moment).count();
  };
  if (last_look_ && seconds_since(*last_look_) < seconds_between_looks()) return false;
  last_look_ = now;
  // A deadlocked mpirun does not reap its workers.
  const std::vector<pid_t> children = ChildrenOf(pid);
  if (std::count_if(children.begin(), children.end(), IsAlive) >= workers_) {
    incomplete_since_.reset();
    return false;
  }
  if (!incomplete_since_) incomplete_since_ = now;
  return seconds_since(*incomplete_since_) >= patience_seconds_;
}

}  // namespace renzan
