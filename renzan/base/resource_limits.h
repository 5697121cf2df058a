#pragma once

// Limits of a process's resources (getrlimit), by name: "nofile", "core", "stack", ...

#include <sys/resource.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace renzan {

struct ResourceLimit {
  rlim_t soft = RLIM_INFINITY, hard = RLIM_INFINITY;
  bool operator==(const ResourceLimit&) const = default;
};
using ResourceLimits = std::map<std::string, ResourceLimit>;

// Of this process.
ResourceLimits OwnLimits();

// `wanted`, with nothing above the hard limits in `most`, and without names that `most` lacks.
ResourceLimits LowerTo(const ResourceLimits& most, ResourceLimits wanted);

// For setrlimit(); names that this system lacks are left out.
std::vector<std::pair<int, rlimit>> NumberedLimits(const ResourceLimits& limits);

}  // namespace renzan
