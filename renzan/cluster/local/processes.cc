#include "renzan/cluster/local/processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <thread>

namespace renzan::cluster {
namespace {

// At an environment that is empty; some processes have none.
constexpr int kMostLooks = 40;

// The value of "Name:\tvalue\n" in /proc/PID/status.
std::string_view Field(std::string_view status, std::string_view name) {
  const size_t found = status.find(fmt::format("\n{}:", name));
  if (found == std::string_view::npos) return {};
  status.remove_prefix(found + name.size() + 2);
  status.remove_prefix(std::min(status.find_first_not_of(" \t"), status.size()));
  return status.substr(0, status.find('\n'));
}

uint64_t SignalSet(std::string_view status, std::string_view name) {
  const std::string_view hexadecimal = Field(status, name);
  uint64_t set = 0;
  std::from_chars(hexadecimal.data(), hexadecimal.data() + hexadecimal.size(), set, 16);
  return set;
}

}  // namespace

// Files in /proc have no size that could be known beforehand, and a stream would throw where a read
// fails.
std::string Contents(pid_t pid, const char* name) {
  const int fd = open(fmt::format("/proc/{}/{}", pid, name).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string contents;
  std::array<char, 4096> piece;
  ssize_t length = 0;
  while ((length = read(fd, piece.data(), piece.size())) > 0)
    contents.append(piece.data(), static_cast<size_t>(length));
  close(fd);
  return length == 0 ? contents : std::string();
}

std::vector<pid_t> AllProcesses() {
  std::vector<pid_t> processes;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    pid_t pid = 0;
    const auto [end, not_a_number] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (not_a_number == std::errc() && *end == 0) processes.push_back(pid);
  }
  return processes;
}

std::vector<pid_t> LivingChildren() {
  const std::string parent = std::to_string(getpid());
  std::vector<pid_t> children;
  for (const pid_t pid : AllProcesses()) {
    const std::string status = Contents(pid, "status");
    if (Field(status, "PPid") == parent && !Field(status, "State").starts_with('Z'))
      children.push_back(pid);
  }
  return children;
}

bool IsPreparedFor(pid_t pid, int signal) {
  const std::string status = Contents(pid, "status");
  const uint64_t wanted = uint64_t{1} << (signal - 1);
  if (((SignalSet(status, "SigIgn") | SignalSet(status, "SigCgt")) & wanted) != 0) return true;
  // Blocked by one who fetches it (signalfd), unless everything is: libraries do that for the
  // moment in which they start a process or a thread.
  const uint64_t blocked = SignalSet(status, "SigBlk");
  return (blocked & wanted) != 0 && (blocked & uint64_t{1} << (SIGSEGV - 1)) == 0;
}

bool IsProcessWith(pid_t pid, const std::string& variable, uid_t uid) {
  const std::string user = fmt::format("{}\t", uid);
  for (int look = 0; look < kMostLooks; ++look) {
    const std::string status = Contents(pid, "status");
    if (!Field(status, "Uid").starts_with(user)) return false;
    const std::string environment = Contents(pid, "environ");
    if (!environment.empty())
      return ('\0' + environment + '\0').find('\0' + variable + '\0') != std::string::npos;
    // In the middle of an exec it has none. Zombies and threads of the kernel have no memory.
    if (Field(status, "VmSize").empty()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

std::vector<pid_t> ProcessesWith(const std::string& variable, uid_t uid) {
  std::vector<pid_t> processes = AllProcesses();
  std::erase_if(processes, [&](pid_t pid) { return !IsProcessWith(pid, variable, uid); });
  return processes;
}

}  // namespace renzan::cluster
