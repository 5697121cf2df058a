#pragma once

// Runs workers to completion although some die: after a failure that a restart may fix, all workers
// are restarted except those that were lost; these come back later. The policy is a pure function;
// the loop is for the main thread of a program without other threads.

#include <functional>
#include <optional>
#include <string>

#include "renzan/base/process/signals.h"
#include "renzan/launch/launch.h"
#include "renzan/launch/launch_result.h"

namespace renzan {

struct ElasticOptions {
  // Never restart with fewer: lost workers are replaced, since the machine still exists. 0: as many
  // as requested.
  int min_workers = 0;
  int max_restarts = 0;                                    // in total
  std::string max_restarts_name = "elastic.max_restarts";  // what to raise, for messages
  double backoff_seconds = 1;  // before the first restart; doubles each time, up to 60 s
  // Once fewer workers than requested have run for this long, they are stopped as the launch
  // contract says and as many as requested are started in their place; 0: never. Doubles each time.
  double grow_after_seconds = 0;
  // Each of fewer workers needs more memory, as for a sharded model: after running out of memory,
  // no worker is left out.
  bool sharded = true;
  // Whether this many workers have enough memory. Asked before a restart with fewer, since each
  // then holds more.
  std::function<bool(int workers)> fits = [](int) { return true; };
};

struct Attempt {
  int workers = 1;
  int restart = 0;          // how many failures came before
  int grown = 0;            // and how many restarts to grow again
  double wait_seconds = 0;  // before this attempt starts
};

// Whether the failure is transient. After a stop request no restart is wanted.
bool MayBeFixedByRestart(const LaunchResult& result);

// The attempt to make after `last` ended with `result`, in a run for which `asked_workers` were
// requested. Nothing: the run has ended.
std::optional<Attempt> NextAttempt(const ElasticOptions& options, int asked_workers,
                                   const Attempt& last, const LaunchResult& result);

// When to stop `attempt` in order to grow; 0: never. Not if a failure afterwards would end the run:
// it then continues as it is.
double GrowAfter(const ElasticOptions& options, int asked_workers, const Attempt& attempt);

using LaunchFunction = std::function<LaunchResult(const Attempt& attempt)>;

struct ElasticResult {
  LaunchResult last;  // of the last attempt, or of a stop request between two
  int restarts = 0;
};

// Calls `launch` until there is no next attempt. Logs one line with the reason for each restart,
// and one if the run failed or was stopped. SIGTERM, SIGINT or SIGHUP between two attempts ends the
// run immediately, with 75 or 130.
ElasticResult RunElastic(const ElasticOptions& options, int workers, const SignalQueue& signals,
                         const LaunchFunction& launch);

// RunElastic for the workers of this machine; `options.restart` is set for each attempt. An Error
// from LaunchLocalWorkers ends the run.
ElasticResult LaunchElastic(LaunchOptions options, const ElasticOptions& elastic = {});

}  // namespace renzan
