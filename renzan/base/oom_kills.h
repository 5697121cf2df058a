#pragma once

// How many processes the kernel has killed because memory ran out: of this process's control group
// where that is counted, else of the machine. If the number rises around a SIGKILL, the kernel sent
// it. 0 if nothing can be read. `root` is prefixed to every path that is read (for tests).
// Thread-safe.

#include <cstdint>
#include <string>

#include "renzan/base/cgroup.h"

namespace renzan {

int64_t OomKills(const std::string& root = "");

// Of this group of the memory controller; in version 2 of groups inside it, too.
struct OomKillsOf {
  int64_t kills = 0;
  bool reached_limit = false;  // the group's own; otherwise another one, or the machine's memory
};
OomKillsOf OomKillsIn(const Cgroup& group);

}  // namespace renzan
