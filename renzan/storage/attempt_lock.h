#pragma once

// The lock of a directory that all attempts of a job write to, in turn. A job system may start the
// next attempt while workers of the one before still run: on a node that does not report any more
// they cannot be told to stop. But they read what both share. So the later attempt leaves its
// number in the directory, and waits; whoever has the lock for an earlier attempt of the same job
// finds it there and sends SIGTERM to itself, as the job system would have: it saves its work and
// ends.

#include <functional>
#include <memory>
#include <string>

#include "renzan/storage/storage.h"

namespace renzan {

struct JobAttempt {
  std::string job;  // empty: no job system started this process
  int attempt = 0;

  // RENZAN_JOB_ID and RENZAN_ATTEMPT, of the launch contract.
  static JobAttempt FromEnvironment();
};

struct AttemptLockTimes {
  double patience_seconds = 600;  // with an earlier attempt, after it was asked to stop
  double poll_seconds = 2;        // for a later one
  double poll_store_seconds = 10;
};

// As Storage::Lock(), but waits for an earlier attempt of this job. Throws Error kTempFail if that
// goes on to write, or `stopped()` ends the wait; kCantCreate if another run has the lock.
std::unique_ptr<DirectoryLock> LockForAttempt(const std::string& dir, const std::string& owner,
                                              const JobAttempt& self,
                                              std::function<bool()> stopped = {},
                                              const AttemptLockTimes& times = {});

}  // namespace renzan
