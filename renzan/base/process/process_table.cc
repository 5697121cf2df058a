#include "renzan/base/process/process_table.h"

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
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <thread>
#include <unordered_map>

namespace renzan {
namespace {

// How often to retry while the environment is empty; some processes have none.
constexpr int kMaxLooks = 40;

// Steps from a process to an ancestor; a tree that changes while it is read could have cycles.
constexpr int kMaxSteps = 1000;

struct Origin {
  pid_t parent = 0, session = 0;
  uint64_t start_ticks = 0;
};

// Nothing if the process does not exist or is a zombie.
std::optional<Origin> OriginOf(pid_t pid) {
  const std::string stat = ProcessFile(pid, "stat");
  // "PID (NAME) STATE PARENT GROUP SESSION ...", with the start in the 22nd field; a name may
  // contain any character.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream rest(stat.substr(name_end + 1));
  char state = 0;
  pid_t group = 0;
  Origin origin;
  rest >> state >> origin.parent >> group >> origin.session;
  std::string skipped;
  for (int field = 7; field < 22; ++field) rest >> skipped;
  rest >> origin.start_ticks;
  if (!rest || state == 'Z' || state == 'X') return std::nullopt;
  return origin;
}

uint64_t SignalSet(std::string_view status, std::string_view name) {
  const std::string_view hexadecimal = StatusField(status, name);
  uint64_t set = 0;
  std::from_chars(hexadecimal.data(), hexadecimal.data() + hexadecimal.size(), set, 16);
  return set;
}

}  // namespace

// Files in /proc have no known size, and a stream buffer would throw if a read fails.
std::string ProcessFile(pid_t pid, const char* name) {
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

std::string_view StatusField(std::string_view text, std::string_view name) {
  const size_t found = text.find(fmt::format("\n{}:", name));
  if (found == std::string_view::npos) return {};
  text.remove_prefix(found + name.size() + 2);
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text.substr(0, text.find('\n'));
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

std::vector<std::vector<pid_t>> ProcessesOf(const std::vector<pid_t>& leaders) {
  std::unordered_map<pid_t, Origin> origins;
  for (const pid_t pid : AllProcesses())
    if (const std::optional<Origin> origin = OriginOf(pid)) origins.emplace(pid, *origin);
  std::unordered_map<pid_t, size_t> numbers;  // of the leaders
  for (size_t i = 0; i < leaders.size(); ++i)
    if (leaders[i] > 0) numbers.emplace(leaders[i], i);
  std::vector<std::vector<pid_t>> processes(leaders.size());
  for (const auto& [pid, own] : origins) {
    auto at = origins.find(pid);
    for (int step = 0; step < kMaxSteps && at != origins.end(); ++step) {
      const auto leader = numbers.find(at->second.session);
      if (leader != numbers.end()) {
        processes[leader->second].push_back(pid);
        break;
      }
      at = origins.find(at->second.parent);
    }
  }
  return processes;
}

bool IsAlive(pid_t pid) { return OriginOf(pid).has_value(); }

std::optional<uint64_t> StartTicksOf(pid_t pid) {
  const std::optional<Origin> origin = OriginOf(pid);
  return origin ? std::optional(origin->start_ticks) : std::nullopt;
}

std::vector<pid_t> ChildrenOf(pid_t pid) {
  const std::string parent = std::to_string(pid);
  std::vector<pid_t> children;
  for (const pid_t each : AllProcesses())
    if (StatusField(ProcessFile(each, "status"), "PPid") == parent) children.push_back(each);
  return children;
}

bool HandlesOrIgnores(pid_t pid, int signal) {
  const std::string status = ProcessFile(pid, "status");
  const uint64_t wanted = uint64_t{1} << (signal - 1);
  if (((SignalSet(status, "SigIgn") | SignalSet(status, "SigCgt")) & wanted) != 0) return true;
  // A blocked signal is probably read with a signalfd, unless all signals are blocked: libraries do
  // that briefly while they start a process or thread.
  const uint64_t blocked = SignalSet(status, "SigBlk");
  return (blocked & wanted) != 0 && (blocked & uint64_t{1} << (SIGSEGV - 1)) == 0;
}

bool IsProcessWith(pid_t pid, const std::string& variable, uid_t uid) {
  const std::string user = fmt::format("{}\t", uid);
  for (int look = 0; look < kMaxLooks; ++look) {
    const std::string status = ProcessFile(pid, "status");
    if (!StatusField(status, "Uid").starts_with(user)) return false;
    const std::string environment = ProcessFile(pid, "environ");
    if (!environment.empty())
      return ('\0' + environment + '\0').find('\0' + variable + '\0') != std::string::npos;
    // The environment is empty during an exec. Zombies and kernel threads have no memory.
    if (StatusField(status, "VmSize").empty()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace renzan
