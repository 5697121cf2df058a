#pragma once

// The daemon's records of jobs, attempts and nodes, as stored. Plain data. Times are Unix
// milliseconds.

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/cluster/core/engine/job_facts.h"
#include "renzan/cluster/core/engine/suspicion.h"
#include "renzan/cluster/core/predict/run_times.h"
#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/spec/node_state.h"

namespace renzan::cluster::local {

struct AttemptRecord : AttemptFacts {
  JobId job = 0;
  int number = 0;
  std::optional<TimeMs> ended;
  std::optional<int> exit_code;
  std::string ended_by;  // "itself", "request", "timeout", ...; "void": it never ran
  std::string message;
};

// Measured times of the job's checkpoints and restarts; nothing: not measured yet.
struct Measured {
  std::optional<TimeMs> checkpoint_ms;  // from the request to the end of a checkpoint
  std::optional<TimeMs> restart_ms;     // from the start of an attempt to its first step
  // Time from SIGTERM until it was killed at the end of its grace period: saving its work takes
  // longer than this. Cleared once it has stopped in time.
  std::optional<TimeMs> killed_after_ms;
  bool operator==(const Measured&) const = default;
};

// What becomes of a job in kCollecting.
struct Collection {
  RecordState becomes = RecordState::kDone;
  TimeMs ended = 0;  // when its last process ended
  std::string text;  // for the job's events
};

// All that the next daemon has to know of a job. Its history, ended attempts and events, is stored
// beside it, and so is what it has used.
struct JobRecord : JobFacts {
  JobId id = 0;
  std::string name, queue;
  // YAML with every default and override resolved. `spec` and `manifest` may be large, so the
  // controller does not keep them in memory: writing a record without `spec` leaves both unchanged.
  std::string spec;
  std::string source;  // file name or "command line", for messages
  std::string submit_dir;
  std::string user;
  uid_t uid = 0;
  gid_t gid = 0;
  int priority = 0;
  int min_workers = 0, max_workers = 0;
  int64_t cpu_millis = 0, memory_mib = 0, gpus = 0;  // of each worker
  TimeMs submitted = 0;
  bool cancel_requested = false;
  // What of its record in the store was found damaged, so that it is ended (DamagedJob) or, if it
  // had ended, not all of it is known any more; empty: nothing.
  std::string damaged;
  std::string held_by;                   // who holds it; empty: it may start
  std::string manifest;                  // JSON
  std::optional<AttemptRecord> attempt;  // the one that has not ended
  Measured measured;
  NamedPlacement reservation;  // nodes that are kept for it while it is pending
  std::optional<Collection> collection;
};

JobTraits TraitsOf(const JobRecord& job);

// The specification and the manifest of a job.
struct JobTexts {
  std::string spec, manifest;
};

// Who owns a job whose record no longer says so: an operator may read it, and no user.
inline constexpr uid_t kNobodysJob = static_cast<uid_t>(-1);

// A job that has not ended and whose record is damaged.
struct DamagedJob {
  // What is still known. At least its id, queue, user and state, and in `damaged` what is not.
  // `attempts` are those that have ended, or `attempt` is known.
  JobRecord record;
  bool owner_known = false;  // otherwise its `uid` is kNobodysJob
};

// The time that it had workers, times their number; 0 until it has ended.
int64_t WorkerMs(const AttemptRecord& attempt);

inline constexpr const char* kUpdatedEvent = "updated";  // its user or the operator changed it

struct EventRecord {
  TimeMs time = 0;
  std::string kind, text;
};

// Who took a node out of service.
enum class ClosedBy { kOperator, kSuspicion, kHealthCheck };

struct NodeRecord {
  std::string name;
  std::string pool;
  NodeState state = NodeState::kReady;
  TimeMs until = kNever;
  ClosedBy closed_by = ClosedBy::kOperator;  // meaningless while it is in service
  std::string reason = {};                   // empty for an operator's decision
};

constexpr const char* NameOf(ClosedBy by) {
  switch (by) {
    case ClosedBy::kOperator:
      return "operator";
    case ClosedBy::kSuspicion:
      return "suspicion";
    case ClosedBy::kHealthCheck:
      return "health_check";
  }
  return "";
}
constexpr std::optional<ClosedBy> ClosedByNamed(std::string_view name) {
  for (const ClosedBy by : {ClosedBy::kOperator, ClosedBy::kSuspicion, ClosedBy::kHealthCheck})
    if (name == NameOf(by)) return by;
  return std::nullopt;
}

struct QuotaOverrideRecord {
  std::string user;
  QuotaOverride quota_override;
};

// What was observed of a pool's nodes since the pool was first used.
struct PoolRecord {
  std::string name;
  TimeMs node_ms = 0;         // node time, of all nodes together
  int64_t interruptions = 0;  // nodes that went away, with or without notice
};

struct UsageRecord {
  double gpu_seconds = 0;
  double cost = 0;

  UsageRecord& operator+=(const UsageRecord& more) {
    gpu_seconds += more.gpu_seconds;
    cost += more.cost;
    return *this;
  }
  UsageRecord& operator-=(const UsageRecord& less) {
    gpu_seconds -= less.gpu_seconds;
    cost -= less.cost;
    return *this;
  }
};

// Ended jobs in the order of their ends.
struct EndedKey {
  TimeMs ended = std::numeric_limits<TimeMs>::min();
  JobId id = 0;
};

// Spans in the order of their ends.
struct UsageSpanKey {
  TimeMs ended = 0;
  JobId job = 0;
  int attempt = 0;
};

// What one attempt of a job used, evenly from its start to its end. Outlives the job.
struct UsageSpan {
  JobId job = 0;
  int attempt = 0;
  std::string queue, user;  // the job's at that time
  TimeMs started = 0, ended = 0;
  UsageRecord usage;

  UsageSpanKey key() const { return {ended, job, attempt}; }
};

struct QueueAndUser {
  std::string queue, user;
  auto operator<=>(const QueueAndUser&) const = default;
};

// What a user has used of a queue with fair share (core/order/fair_share.h), as of a time.
struct UsedLatelyRecord {
  std::string queue, user;
  std::string kind;  // "gpu" or "cpu"
  double seconds = 0;
  TimeMs as_of = 0;
};

// An ended job from which run times are predicted (predict/run_times.h).
struct EndedRunTime {
  int64_t number = 0;  // from 1, in the order of the ends
  JobTraits traits;
  TimeMs ran_ms = 0;  // as if with all of its workers
};

struct LoanRecord {
  std::string lender, borrower;
  double gpu_seconds = 0;
};

}  // namespace renzan::cluster::local
