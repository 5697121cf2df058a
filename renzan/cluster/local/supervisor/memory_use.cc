#include "renzan/cluster/local/supervisor/memory_use.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "renzan/base/process/process_table.h"

namespace renzan::cluster::local {
namespace {

// The number in "NAME:   123 kB"; 0 if there is none.
int64_t Kib(std::string_view text, std::string_view name) {
  const std::string_view value = StatusField(text, name);
  int64_t kib = 0;
  std::from_chars(value.data(), value.data() + value.size(), kib);
  return kib;
}

int64_t ResidentKib(pid_t pid) {
  const std::string status = ProcessFile(pid, "status");
  return Kib(status, "RssAnon") + Kib(status, "RssShmem");
}

}  // namespace

int64_t MaxMemoryKib(const std::vector<pid_t>& processes) {
  int64_t kib = 0;
  for (const pid_t pid : processes) kib += ResidentKib(pid);
  return kib;
}

int64_t MemoryKib(const std::vector<pid_t>& processes) {
  int64_t kib = 0;
  int64_t largest_hidden_kib = 0;
  for (const pid_t pid : processes) {
    const std::string pages = ProcessFile(pid, "smaps_rollup");
    if (StatusField(pages, "Pss_Anon").empty()) {
      // It has ended and uses no memory, or we cannot inspect it. Hidden processes may share all of
      // their memory with each other.
      largest_hidden_kib = std::max(largest_hidden_kib, ResidentKib(pid));
    } else {
      kib += Kib(pages, "Pss_Anon") + Kib(pages, "Pss_Shmem");
    }
  }
  return std::max(kib, largest_hidden_kib);
}

}  // namespace renzan::cluster::local
