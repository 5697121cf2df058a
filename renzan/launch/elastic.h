#pragma once

// Runs workers to the end although some die: after a failure that another attempt may cure, all of
// them are started again, with those that are left. The policy is a pure function; the loop is for
// the main thread of a program without other threads.

#include <functional>
#include <optional>

#include "renzan/base/process/signals.h"
#include "renzan/launch/launch.h"
#include "renzan/launch/launch_result.h"

namespace renzan {

struct ElasticOptions {
  // Never start again with fewer: a lost worker is replaced instead, the machine is still there.
  // 0: as many as were asked for.
  int min_workers = 0;
  int max_restarts = 0;        // over the life of the launcher
  double backoff_seconds = 1;  // before the first restart; doubles each time, up to 60 s
};

struct Attempt {
  int workers = 1;
  int restart = 0;          // 0: the first attempt
  double wait_seconds = 0;  // before it
};

// True for a worker killed by a signal, a lost peer (69), a machine that refuses (71: memory, a
// thread) and an I/O error (74). Other failures (bad data, a wrong configuration, a diverged run)
// would come again, and whoever asked for the end does not want another attempt.
bool MayBeCuredByRestart(const LaunchResult& result);

// What comes after attempt `last` of a run that `asked_workers` were asked for, and that ended
// with `result`. Nothing: the run has ended.
std::optional<Attempt> NextAttempt(const ElasticOptions& options, int asked_workers,
                                   const Attempt& last, const LaunchResult& result);

using LaunchFunction = std::function<LaunchResult(const Attempt& attempt)>;

// Calls `launch` until there is no next attempt and returns the exit status of the last one. One
// line on stderr says why for each restart, and one if the run failed or was stopped. SIGTERM,
// SIGINT or SIGHUP between two attempts ends the run at once, with 75 or 130.
int RunElastic(const ElasticOptions& options, int workers, const SignalQueue& signals,
               const LaunchFunction& launch);

// RunElastic for the workers of this machine; `options.restart` is set for each attempt. An Error
// that LaunchLocalWorkers throws ends the run.
int LaunchElastic(LaunchOptions options, const ElasticOptions& elastic = {});

}  // namespace renzan
