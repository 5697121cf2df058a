#pragma once

// What a supervisor is asked for: one file a request in DIR/requests, and a pipe with a name
// (DIR/wake) that wakes the supervisor up. A file that was written before the supervisor looked for
// the first time is found as well; a byte in the pipe reaches nobody else, unlike a signal to a
// process id.

#include <string>
#include <vector>

#include "renzan/cluster/local/supervisor/attempt_files.h"

namespace renzan::cluster::local {

struct AttemptRequest {
  enum class Kind { kStop, kCheckpoint, kNodeFailed };
  Kind kind = Kind::kStop;
  double grace_seconds = 0;  // kStop
  std::string node;          // kNodeFailed
};

// Makes the directory and the pipe; before the supervisor is started.
void MakeRequestBox(const AttemptPaths& paths);

// Returns when the request is durable and the supervisor, if one lives, has been woken.
// Thread-safe. Throws Error kNoInput when no attempt was started there, kIo when the request cannot
// be written.
void PostRequest(const AttemptPaths& paths, const AttemptRequest& request);

// The supervisor's end; when it goes, the pipe goes. Not thread-safe.
class RequestInbox {
 public:
  explicit RequestInbox(const AttemptPaths& paths);
  ~RequestInbox();
  RequestInbox(const RequestInbox&) = delete;
  RequestInbox& operator=(const RequestInbox&) = delete;

  // Can be read when there may be something new.
  int fd() const { return fd_; }

  // What has come since the last call, the oldest first; the files are removed. A file that is no
  // request is removed too, with a warning.
  std::vector<AttemptRequest> Take();

 private:
  std::string requests_, wake_;
  int fd_ = -1;
};

}  // namespace renzan::cluster::local
