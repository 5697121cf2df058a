#pragma once

// Requests to a supervisor: one file per request in DIR/requests, and a named pipe (DIR/wake) that
// wakes the supervisor up. Files from before the supervisor's start are found too. Unlike a signal
// to a process id, a byte in the pipe can never reach another process. Spare files in DIR/requests
// make sure that a job can be stopped when it has filled the disk.

#include <cstdint>
#include <string>
#include <vector>

#include "renzan/cluster/local/supervisor/attempt_files.h"

namespace renzan::cluster::local {

struct AttemptRequest {
  enum class Kind { kStop, kCheckpoint, kNodeFailed, kTimeLimit };
  Kind kind = Kind::kStop;
  double grace_seconds = 0;  // kStop
  std::string node = {};     // kNodeFailed
  int64_t timeout_ms = 0;    // kTimeLimit; as AttemptPlan::timeout_ms
};

// Creates the directory and the pipe, before the supervisor is started.
void MakeRequestBox(const AttemptPaths& paths);
// What requests are written to when the disk is full. Throws Error kIo if it is full already.
void MakeSpareRequests(const AttemptPaths& paths);
void RemoveSpareRequests(const AttemptPaths& paths);

// Returns once the request is durable and the supervisor, if there is one, has been woken.
// Thread-safe. Throws Error kNoInput if no attempt was started there, kIo if the request cannot be
// written.
void PostRequest(const AttemptPaths& paths, const AttemptRequest& request);

// The supervisor's side; removes the pipe when destroyed. Not thread-safe.
class RequestInbox {
 public:
  explicit RequestInbox(const AttemptPaths& paths);
  ~RequestInbox();
  RequestInbox(const RequestInbox&) = delete;
  RequestInbox& operator=(const RequestInbox&) = delete;

  // Readable when there may be new requests.
  int fd() const { return fd_; }

  // New requests, oldest first. Their files, also invalid ones (with a warning), become spare ones
  // again or are removed.
  std::vector<AttemptRequest> Take();

 private:
  std::string requests_, wake_;
  int fd_ = -1;
};

}  // namespace renzan::cluster::local
