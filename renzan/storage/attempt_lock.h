#pragma once

// The lock of a directory that all attempts of a job write to, one at a time. A job system may
// start the next attempt while workers of the previous one still run: if their node no longer
// reports, they cannot be told to stop. But they can read the directory that both share. So the
// later attempt leaves its number there and waits; whoever holds the lock for an earlier attempt of
// the same job finds the number and sends SIGTERM to itself, as the job system would have: it saves
// its work and ends.

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
  double patience_seconds = 600;  // how long to wait for an earlier attempt that was asked to stop
  double poll_seconds = 2;        // how often to look for a later attempt
  double poll_store_seconds = 10;
};

// As Storage::Lock(), but waits for an earlier attempt of this job. Throws Error kTempFail if that
// keeps writing, or `stopped()` ends the wait; kCantCreate if another run has the lock.
std::unique_ptr<DirectoryLock> LockForAttempt(const std::string& dir, const std::string& owner,
                                              const JobAttempt& self,
                                              std::function<bool()> stopped = {},
                                              const AttemptLockTimes& times = {});

}  // namespace renzan
