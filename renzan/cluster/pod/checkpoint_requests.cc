#include "renzan/cluster/pod/checkpoint_requests.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan::cluster::pod {

CheckpointRequests::CheckpointRequests(const std::string& directory)
    // Nodes may have used up their inotify instances.
    : directory_(directory), changes_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  Watch();  // before the first look, so that no later change is missed
  last_ = Read();
}

// Does nothing if it is being watched already, or does not exist.
void CheckpointRequests::Watch() {
  if (changes_)
    inotify_add_watch(changes_.get(), directory_.c_str(),
                      IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_CLOSE_WRITE);
}

std::string CheckpointRequests::Read() const {
  try {
    std::string text = ReadFile(directory_ + "/checkpoint-request");
    const size_t end = text.find_last_not_of(" \t\r\n");
    text.resize(end == std::string::npos ? 0 : end + 1);
    return text;
  } catch (const Error&) {
    return "";  // no volume, no such annotation, or the moment of a replacement
  }
}

bool CheckpointRequests::Take() {
  char events[4096];
  while (changes_ && read(changes_.get(), events, sizeof(events)) > 0) {
  }
  Watch();
  std::string now = Read();
  if (now.empty() || now == last_) return false;
  last_ = std::move(now);
  return true;
}

}  // namespace renzan::cluster::pod
