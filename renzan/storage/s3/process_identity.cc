#include "renzan/storage/s3/process_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <sstream>

#include "renzan/base/error.h"

namespace renzan::s3 {
namespace {

// Identifies the machine's boot and the PID namespace.
std::string Kernel() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  struct stat pids {};
  if (boot.empty() || ::stat("/proc/self/ns/pid", &pids) != 0) return "";
  return fmt::format("{}/{}", boot, pids.st_ino);
}

// When the process was started, in clock ticks; empty if there is none, or only what nobody has
// asked after yet. The 22nd field, the third being its state: the second, in parentheses, may hold
// anything.
std::string StartOf(const std::string& pid) {
  std::string line;
  std::getline(std::ifstream("/proc/" + pid + "/stat"), line);
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return "";
  std::istringstream fields(line.substr(name_end + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) {
    fields >> field;
    if (i == 3 && (field == "Z" || field == "X")) return "";
  }
  return field;
}

}  // namespace

std::string RandomName() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

std::string ThisProcess() {
  const std::string pid = std::to_string(::getpid());
  return fmt::format("{} {} {}", Kernel(), pid, StartOf(pid));
}

bool IsGone(const std::string& process) {
  std::istringstream fields(process);
  std::string kernel, pid, start;
  fields >> kernel >> pid >> start;
  if (start.empty() || kernel != Kernel()) return false;
  return StartOf(pid) != start;
}

}  // namespace renzan::s3
