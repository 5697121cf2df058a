#include "renzan/base/process/process_cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>
#include <thread>

#include "renzan/base/error.h"
#include "renzan/base/process/pidfd.h"
#include "renzan/base/process/process_table.h"

namespace renzan {
namespace {

using Milliseconds = std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr auto kLook = Milliseconds(2);  // between two looks at whether something has happened
constexpr auto kToFreeze = Milliseconds(500);  // usually takes microseconds
constexpr auto kToRemove = Milliseconds(500);  // the kernel lets go of ended processes

template <typename Condition>
bool Within(SteadyClock::duration time, const Condition& condition) {
  for (const auto end = SteadyClock::now() + time;;) {
    if (condition()) return true;
    if (SteadyClock::now() >= end) return false;
    std::this_thread::sleep_for(kLook);
  }
}

std::vector<std::string> GroupsInside(const std::string& directory) {
  std::vector<std::string> groups;
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error))
    if (at->is_directory(error)) groups.push_back(at->path().string());
  return groups;
}

// Those that have ended and wait for their parent, too.
void AddMembers(const std::string& directory, std::vector<pid_t>& members) {
  std::ifstream file(directory + "/cgroup.procs");
  // 0: a process that is not visible here; never signal it, that would mean our process group.
  for (pid_t pid = 0; file >> pid;)
    if (pid > 0 && pid != getpid()) members.push_back(pid);
  for (const std::string& group : GroupsInside(directory)) AddMembers(group, members);
}

std::vector<pid_t> Members(const std::string& directory) {
  std::vector<pid_t> members;
  AddMembers(directory, members);
  return members;
}

// The innermost first.
bool RemoveGroups(const std::string& directory) {
  for (const std::string& group : GroupsInside(directory)) RemoveGroups(group);
  return rmdir(directory.c_str()) == 0 || errno == ENOENT;
}

// Whether a file with lines such as "frozen 1" has this one.
bool HasLine(const std::string& path, const std::string& wanted) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line == wanted) return true;
  return false;
}

}  // namespace

void ProcessCgroup::Make() const {
  if (mkdir(group_.directory.c_str(), 0755) != 0)
    FailErrno(errno, fmt::format("cannot make the control group {}", group_.directory));
}

bool ProcessCgroup::Remove() const {
  return Within(kToRemove, [&] { return RemoveGroups(group_.directory); });
}

Descriptor ProcessCgroup::Entrance() const {
  const std::string path = group_.directory + "/cgroup.procs";
  Descriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) FailErrno(errno, fmt::format("cannot open {}", path));
  return file;
}

std::vector<pid_t> ProcessCgroup::Processes() const {
  // A process that was listed may have handed on to a new one, which was not, and ended.
  constexpr int kMostLooks = 5;
  std::vector<pid_t> processes;
  for (int look = 0; look < kMostLooks && processes.empty(); ++look) {
    processes = Members(group_.directory);
    if (processes.empty()) break;
    std::erase_if(processes, [](pid_t pid) { return !IsAlive(pid); });
  }
  return processes;
}

int ProcessCgroup::Write(const std::string& file, const std::string& value) const {
  const Descriptor to(open((group_.directory + "/" + file).c_str(), O_WRONLY | O_CLOEXEC));
  if (!to) return errno;
  return write(to.get(), value.data(), value.size()) < 0 ? errno : 0;
}

void ProcessCgroup::Freeze() const {
  if (group_.v2) {
    if (Write("cgroup.freeze", "1") == 0)
      Within(kToFreeze, [&] { return HasLine(group_.directory + "/cgroup.events", "frozen 1"); });
  } else if (Write("freezer.state", "FROZEN") == 0) {
    Within(kToFreeze, [&] { return HasLine(group_.directory + "/freezer.state", "FROZEN"); });
  }
}

void ProcessCgroup::Thaw() const {
  if (group_.v2)
    Write("cgroup.freeze", "0");
  else
    Write("freezer.state", "THAWED");
}

// The handle is taken before the process is seen in the group once more, so that no signal reaches
// one outside that got the pid of one that has ended.
void ProcessCgroup::Signal(int signal) const {
  std::map<pid_t, ProcessHandle> handles;
  for (const pid_t pid : Members(group_.directory)) handles.try_emplace(pid, pid);
  for (const pid_t pid : Members(group_.directory))
    if (const auto handle = handles.find(pid); handle != handles.end())
      handle->second.Signal(signal);
}

bool ProcessCgroup::Kill(double seconds) const {
  const auto time = std::chrono::duration_cast<SteadyClock::duration>(
      std::chrono::duration<double>(std::max(0.0, seconds)));
  return Within(time, [&] {
    // Reaches those that are being started, too. Since Linux 5.14.
    if (group_.v2 && Write("cgroup.kill", "1") == 0) return Processes().empty();
    if (Processes().empty()) return true;
    Freeze();
    Signal(SIGKILL);
    Thaw();  // version 1: only then do they end
    return Within(10 * kLook, [&] { return Processes().empty(); });
  });
}

}  // namespace renzan
