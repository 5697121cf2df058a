#include "renzan/base/resource_limits.h"

#include <algorithm>
#include <iterator>

namespace renzan {
namespace {

constexpr std::pair<const char*, int> kResources[] = {
    {"as", RLIMIT_AS},           {"core", RLIMIT_CORE},         {"cpu", RLIMIT_CPU},
    {"data", RLIMIT_DATA},       {"fsize", RLIMIT_FSIZE},       {"locks", RLIMIT_LOCKS},
    {"memlock", RLIMIT_MEMLOCK}, {"msgqueue", RLIMIT_MSGQUEUE}, {"nice", RLIMIT_NICE},
    {"nofile", RLIMIT_NOFILE},   {"nproc", RLIMIT_NPROC},       {"rss", RLIMIT_RSS},
    {"rtprio", RLIMIT_RTPRIO},   {"rttime", RLIMIT_RTTIME},     {"sigpending", RLIMIT_SIGPENDING},
    {"stack", RLIMIT_STACK}};

}  // namespace

ResourceLimits OwnLimits() {
  ResourceLimits limits;
  for (const auto& [name, resource] : kResources)
    if (rlimit limit{}; getrlimit(resource, &limit) == 0)
      limits[name] = {.soft = limit.rlim_cur, .hard = limit.rlim_max};
  return limits;
}

ResourceLimits LowerTo(const ResourceLimits& most, ResourceLimits wanted) {
  std::erase_if(wanted, [&](const auto& each) { return !most.contains(each.first); });
  for (auto& [name, limit] : wanted) {
    limit.hard = std::min(limit.hard, most.at(name).hard);
    limit.soft = std::min(limit.soft, limit.hard);
  }
  return wanted;
}

std::vector<std::pair<int, rlimit>> NumberedLimits(const ResourceLimits& limits) {
  std::vector<std::pair<int, rlimit>> numbered;
  for (const auto& [name, resource] : kResources)
    if (const auto limit = limits.find(name); limit != limits.end())
      numbered.push_back({resource, {limit->second.soft, limit->second.hard}});
  return numbered;
}

}  // namespace renzan
