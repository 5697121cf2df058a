#include "renzan/base/process/cgroup_probe.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>

#include "renzan/base/process/process_table.h"

namespace renzan {
namespace {

// 0: /proc does not say.
ino_t OwnPidNamespace() {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

std::string PrefixHere() { return fmt::format("renzan-probe-{}-", OwnPidNamespace()); }

// Whether the process that has made a group of this name, less the prefix, has ended.
bool HasMakerEnded(const std::string& rest) {
  pid_t pid = 0;
  unsigned long long start = 0;
  unsigned number = 0;
  int length = 0;
  if (sscanf(rest.c_str(), "%d-%llu-%u%n", &pid, &start, &number, &length) != 3 ||
      static_cast<size_t>(length) != rest.size())
    return false;
  const std::optional<uint64_t> started = StartTicksOf(pid);
  // What /proc does not show may still be there: out of descriptors, or it is of other processes.
  if (!started || start == 0) return kill(pid, 0) != 0 && errno == ESRCH;
  return *started != start;
}

}  // namespace

std::string NewProbeName() {
  static std::atomic<unsigned> made = 0;
  return fmt::format("{}{}-{}-{}", PrefixHere(), getpid(), StartTicksOf(getpid()).value_or(0),
                     ++made);
}

void RemoveLeftProbes(const std::string& directory) {
  if (OwnPidNamespace() == 0) return;
  const std::string prefix = PrefixHere();
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    // The kernel refuses to remove one that has processes or groups inside.
    if (name.starts_with(prefix) && HasMakerEnded(name.substr(prefix.size())))
      rmdir(at->path().c_str());
  }
}

}  // namespace renzan
