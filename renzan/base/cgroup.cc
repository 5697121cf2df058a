#include "renzan/base/cgroup.h"

#include <fstream>
#include <optional>
#include <sstream>

namespace renzan {
namespace {

// Where a cgroup hierarchy is mounted, and which of its groups appears at the mount point.
struct Mount {
  std::string point, root;
};

std::vector<std::string> Lines(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

bool HasWord(const std::string& list, std::string_view word) {
  std::istringstream words(list);
  for (std::string each; std::getline(words, each, ',');)
    if (each == word) return true;
  return false;
}

// ID PARENT MAJOR:MINOR ROOT POINT OPTIONS... - TYPE SOURCE OPTIONS
std::optional<Mount> FindMount(const std::vector<std::string>& mounts, std::string_view controller,
                               bool v2) {
  for (const std::string& line : mounts) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream before(line), after(line.substr(dash + 3));
    std::string id, parent, device, type, source, options;
    Mount mount;
    before >> id >> parent >> device >> mount.root >> mount.point;
    after >> type >> source >> options;
    if (v2 ? type == "cgroup2" : type == "cgroup" && HasWord(options, controller)) return mount;
  }
  return std::nullopt;
}

// HIERARCHY:CONTROLLERS:PATH; version 2 is hierarchy 0 without controllers.
std::optional<std::string> FindGroup(const std::vector<std::string>& groups,
                                     std::string_view controller, bool v2) {
  for (const std::string& line : groups) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (v2 ? line.starts_with("0::") : HasWord(controllers, controller))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

}  // namespace

std::vector<Cgroup> CgroupsOfThisProcess(std::string_view controller, const std::string& root) {
  std::vector<Cgroup> groups;
  for (const bool v2 : {true, false}) {
    const auto mount = FindMount(Lines(root + "/proc/self/mountinfo"), controller, v2);
    const auto group = FindGroup(Lines(root + "/proc/self/cgroup"), controller, v2);
    if (!mount || !group) continue;
    // In a container the mount point shows the container's own group, but the path is the host's.
    std::string below = *group;
    if (mount->root != "/") {
      below = below == mount->root || below.starts_with(mount->root + "/")
                  ? below.substr(mount->root.size())
                  : "";
    }
    for (;;) {
      while (below.ends_with('/')) below.pop_back();
      groups.push_back({mount->point + below, v2});
      if (below.empty()) break;
      const size_t slash = below.rfind('/');
      below.resize(slash == std::string::npos ? 0 : slash);
    }
  }
  return groups;
}

}  // namespace renzan
