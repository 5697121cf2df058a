#include "renzan/base/file/bus_error.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <mutex>

#include "renzan/base/error.h"

namespace renzan {
namespace {

// One mapped file. A signal handler walks the list, so nodes are never freed, only reused. `begin`
// is null in a free node and is set last.
struct MapNode {
  std::atomic<const std::byte*> begin = nullptr;
  std::atomic<size_t> bytes = 0;
  std::string path;
  MapNode* next = nullptr;
};

std::atomic<MapNode*> map_nodes = nullptr;
std::mutex map_nodes_mutex;  // held while the list is changed

const MapNode* FindMap(const std::byte* address) {
  for (const MapNode* map = map_nodes.load(std::memory_order_acquire); map != nullptr;
       map = map->next) {
    const std::byte* const begin = map->begin.load(std::memory_order_acquire);
    if (begin != nullptr && address >= begin && address < begin + map->bytes.load()) return map;
  }
  return nullptr;
}

void WriteToStderr(const char* text) {
  // Nothing can be done if stderr cannot be written.
  [[maybe_unused]] const ssize_t wrote = ::write(STDERR_FILENO, text, std::strlen(text));
}

// Calls only async-signal-safe functions.
void OnBusError(int signal, siginfo_t* info, void*) {
  const auto* const address = static_cast<const std::byte*>(info->si_addr);
  const MapNode* const map = FindMap(address);
  if (map == nullptr) {
    // Not one of our maps: the instruction is retried, and this time the default action kills.
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    ::sigaction(signal, &action, nullptr);
    return;
  }
  const auto offset = static_cast<off_t>(address - map->begin.load());
  struct stat now {};
  const bool gone = ::stat(map->path.c_str(), &now) != 0;
  // The last page may extend beyond the end of the file.
  const bool shorter = !gone && offset >= now.st_size;
  WriteToStderr("error: cannot read ");
  WriteToStderr(map->path.c_str());
  if (shorter) {
    WriteToStderr(": the file was truncated while it was in use: restore it\n");
    ::_exit(static_cast<int>(ErrorCode::kData));
  }
  WriteToStderr(": the disk or network file system reports an I/O error\n");
  ::_exit(static_cast<int>(ErrorCode::kIo));
}

}  // namespace

void ExitOnBusErrors() {
  struct sigaction action {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

void RegisterMap(const std::byte* begin, size_t bytes, const std::string& path) {
  const std::lock_guard lock(map_nodes_mutex);
  MapNode* map = map_nodes.load(std::memory_order_relaxed);
  while (map != nullptr && map->begin.load(std::memory_order_relaxed) != nullptr) map = map->next;
  const bool fresh = map == nullptr;
  if (fresh) map = new MapNode;
  map->path = path;
  map->bytes = bytes;
  map->begin.store(begin, std::memory_order_release);
  if (!fresh) return;
  map->next = map_nodes.load(std::memory_order_relaxed);
  map_nodes.store(map, std::memory_order_release);
}

void UnregisterMap(const std::byte* begin) {
  const std::lock_guard lock(map_nodes_mutex);
  for (MapNode* map = map_nodes.load(std::memory_order_relaxed); map != nullptr; map = map->next) {
    if (map->begin.load(std::memory_order_relaxed) != begin) continue;
    map->begin.store(nullptr, std::memory_order_release);
    return;
  }
}

}  // namespace renzan
