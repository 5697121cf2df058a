#pragma once

// The scheduler's input: nodes, pools, queues, users and all jobs that have not ended, at one
// moment. Plain data that the environment (the daemon, the simulator) keeps up to date. It is the
// scheduler's only input: the same snapshot always gives the same decisions.
//
// Invariants: `jobs` is sorted by id; every index is valid; a job's workers run on nodes that are
// not kGone; the workers of all running, stopping and resizing jobs fit on their nodes.

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "renzan/cluster/core/queue_rights.h"
#include "renzan/cluster/core/resources.h"

namespace renzan::cluster {

using JobId = int64_t;
// Milliseconds: Unix time on a machine, from 0 in a simulation.
using TimeMs = int64_t;
inline constexpr TimeMs kSecond = 1'000, kMinute = 60 * kSecond, kHour = 60 * kMinute;
inline constexpr TimeMs kNever = std::numeric_limits<TimeMs>::max();
inline constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

using Labels = std::map<std::string, std::string>;

enum class NodeState {
  kReady,
  kBooting,  // bought, not up yet; ready at `until`
  // Nothing starts here. The node goes away at `until` (spot notice, scale in). If that is kNever,
  // an operator is draining it: jobs that save when stopped leave, others may run to their end.
  kDraining,
  kGone,      // failed or returned; kept so that indices stay valid
  kCordoned,  // nothing new starts here; running jobs stay
};

// Whether the machine is up, even if nothing may start on it.
inline bool IsThere(NodeState state) {
  return state != NodeState::kBooting && state != NodeState::kGone;
}
// Whether new workers may start there, now or once it has booted.
inline bool TakesWork(NodeState state) {
  return state == NodeState::kReady || state == NodeState::kBooting;
}

struct Node {
  std::string name;
  int pool = -1;  // in Snapshot::pools; -1: in no pool
  Resources capacity;
  Labels labels;  // including its pool's; the level "host" is the node itself and needs no label
  NodeState state = NodeState::kReady;
  TimeMs until = kNever;  // see NodeState; kNever for an operator's drain
  TimeMs idle_since = 0;  // when its last worker left; meaningless while it has any
  bool spot = false;
  // Why it was taken out of service, unless an operator did it: "its health check failed: ...".
  std::string reason = {};
};

// Nodes of one machine type. A pool whose size is a range is scaled: nodes are bought and returned.
struct Pool {
  std::string name;
  Resources capacity;
  Labels labels;
  // Topology level -> number of domains over which the pool's nodes are spread round-robin.
  std::map<std::string, int> domains;
  bool spot = false;
  int min_nodes = 0, max_nodes = 0;  // equal: never scaled
  double price_per_hour = 0;         // of one node
  TimeMs boot_ms = 0;
  TimeMs idle_ms = 600'000;  // a bought node is returned after being idle for this long
  // Interruptions per node and hour, measured or assumed; 0 for machines that are never taken away.
  double interruptions_per_hour = 0;
};

// What a user has used of a queue lately: each second of it counts half after the half-life.
struct UsedLately {
  int user = 0;        // in Snapshot::users
  double seconds = 0;  // of a GPU; of a core where there are no GPUs
  bool operator==(const UsedLately&) const = default;
};

struct FairShare {
  TimeMs half_life = 0;
  std::vector<UsedLately> used;  // as of Snapshot::now, sorted by user; others have used nothing
  bool operator==(const FairShare&) const = default;
};

struct Queue {
  std::string name;
  // `guaranteed` is this queue's own whenever it needs it; it never uses more than `limit`. A kind
  // that this queue does not mention is guaranteed 0 and unlimited here. If no queue is guaranteed
  // any of a kind, no use of it counts as borrowed: a limit binds only its own queue.
  Resources guaranteed;
  Resources limit = Unlimited();
  bool removed = false;  // the configuration no longer has it: its jobs are held
  QueueRights rights = {};
  // In Snapshot::queues: what it is guaranteed and does not use is lent to the parent's other
  // queues first. The parent has no jobs, is guaranteed at least what all of its queues are, and
  // may have a parent itself.
  std::optional<int> parent = {};
  // A queue, its parent, the parent's parent and so on are at most this many.
  static constexpr int kMostLevels = 8;
  // Of equal priority, users who have used less of the queue lately go first (order/fair_share.h).
  std::optional<FairShare> fair_share = {};

  static Resources Unlimited() {
    Resources all;
    all.amount.fill(kUnlimited);
    return all;
  }
};

// A temporarily higher cap.
struct QuotaOverride {
  int64_t max_gpus = kUnlimited;
  TimeMs until = 0;
};

// A node on which jobs of one user failed soon after their start, while none survived there.
struct FailingNode {
  std::string node;
  int jobs = 0;       // that failed there in the last hour
  TimeMs since = 0;   // the failures from then on are just enough (node_health.suspect_after)
  TimeMs latest = 0;  // when the last of them failed
  bool operator==(const FailingNode&) const = default;
};

struct User {
  std::string name;
  int64_t max_gpus = kUnlimited;  // of running jobs
  std::vector<QuotaOverride> quota_overrides;
  // Sorted by node. The user's other jobs avoid them (place/avoidance.h).
  std::vector<FailingNode> failing_on = {};

  int64_t CapAt(TimeMs now) const;
};

// What one worker needs and which nodes it may use. Jobs share equal requests, so a result computed
// for one request holds for all jobs that have it.
struct WorkerRequest {
  Resources per_worker;
  Labels required;   // a node must have all of them
  Labels preferred;  // nodes with more of them are used first
  // All workers in one domain of this topology level ("host", "rack": a node label). Empty: none.
  std::string topology_level;
  bool topology_required = false;           // otherwise preferred
  std::vector<std::string> excluded_nodes;  // names, sorted: no worker runs there

  bool operator==(const WorkerRequest&) const = default;
};

// Some workers of a gang on one node.
struct Placed {
  int node = 0;
  int workers = 0;
  bool operator==(const Placed&) const = default;
};
using Placement = std::vector<Placed>;  // sorted by node, each node once, workers >= 1

int NumWorkers(const Placement& placement);
// Whether any of the workers are on the node.
bool IsOn(const Placement& placement, int node);

// Quantiles of a run time: by then this share of similar jobs has ended. All zero: not known.
inline constexpr std::array<float, 5> kQuantiles = {0.1F, 0.25F, 0.5F, 0.75F, 0.9F};
using RunTimeQuantiles = std::array<TimeMs, kQuantiles.size()>;

enum class JobState {
  kPending,
  kRunning,
  kStopping,  // was told to stop; holds its resources until its processes have exited
  kResizing,  // was told to stop and will restart on `target`, which is held for it
};

struct Job {
  JobId id = 0;
  int request = 0;  // in Snapshot::worker_requests
  int queue = 0;
  int user = 0;
  int priority = 0;  // higher goes first
  int min_workers = 1, max_workers = 1;
  // Saves its work on SIGTERM (the launch contract). Only such jobs are resized or moved; only
  // those that finish saving within their grace period (SavesWhenStopped) are backfilled.
  bool checkpoints = false;
  bool preemptible = true;  // false: never stopped on behalf of another job
  // A grand challenge: it goes before all others, and quotas and caps neither bind nor count it. It
  // is not preemptible.
  bool quota_exempt = false;
  TimeMs submitted = 0;  // with the id, its position in the queue; preemption does not change it
  TimeMs grace_ms = 30'000;  // time between SIGTERM and SIGKILL
  // Longest time between checkpoints that the job accepts; the scheduler's own bound applies too.
  TimeMs max_checkpoint_interval_ms = kNever;

  JobState state = JobState::kPending;
  TimeMs eligible_at = 0;  // not started before (back-off)
  std::string held;        // why it may not start (again); empty: it may

  // While kRunning, kStopping or kResizing:
  Placement placement;
  Placement target;  // kResizing only
  // kStopping, kResizing: the job it makes room for (Stop::on_behalf_of). That job goes first in
  // the pending queue; otherwise another one could take the resources it preempted for.
  JobId stopping_for = 0;
  TimeMs started = 0;
  TimeMs last_resize = 0;                 // or start
  std::optional<TimeMs> last_checkpoint;  // none since `started`
  bool backfilled = false;                // runs on nodes that are reserved for another job
  TimeMs waiting_since = 0;  // while kPending: since it was submitted or last had workers
  // The service it got before `started`: the time that it had workers, times their number.
  int64_t attained_worker_ms = 0;

  // Estimates that improve decisions; correctness does not depend on them.
  TimeMs restart_cost_ms = 30'000;    // from start until it is back where it stopped
  TimeMs checkpoint_cost_ms = 5'000;  // of its last one
  int64_t state_bytes = 0;            // of its last full checkpoint
  RunTimeQuantiles run_time{};        // predicted when it was submitted (predict/run_times.h)
  // Predicted when the snapshot was taken, by what has ended since then, too. For estimates only
  // (LatestRunTime()): decisions would change with what ends elsewhere.
  std::optional<RunTimeQuantiles> run_time_now;
  std::optional<TimeMs> expected_end;  // while running; from its status or timeout
  int preemptions = 0;                 // stops on request, and moves that make room for another job
  int reservation_yields = 0;          // of these: stops for a reservation

  // Names, sorted, of the nodes on which it failed soon after its start: it avoids them
  // (place/avoidance.h).
  std::vector<std::string> failed_on;
};

// The worker time that the job has got until `now`.
int64_t AttainedWorkerMs(const Job& job, TimeMs now);

// Whether a stop is expected to lose no work. A checkpoint that takes longer than the grace period
// is cut short, and all work since the previous one is lost.
inline bool SavesWhenStopped(const Job& job) {
  return job.checkpoints && job.checkpoint_cost_ms <= job.grace_ms;
}

// Nodes kept for a job that cannot start yet. It keeps them until it has started, wherever that is.
struct Reservation {
  JobId job;
  Placement placement;
  bool operator==(const Reservation&) const = default;
};

struct Snapshot {
  TimeMs now = 0;
  std::vector<std::string> resource_names = {"cpu", "memory", "gpu"};
  std::vector<std::string> topology_levels;  // widest first: zone, rack; "host" is implied last
  std::vector<Node> nodes;
  std::vector<Pool> pools;
  std::vector<Queue> queues;
  std::vector<User> users;
  std::vector<WorkerRequest> worker_requests;
  std::vector<Job> jobs;                  // not ended, sorted by id
  std::vector<Reservation> reservations;  // sorted by job; of jobs that may have ended meanwhile
  double budget_per_hour = std::numeric_limits<double>::infinity();  // for nodes of priced pools

  // The index of an equal request; adds it if there is none.
  int InternRequest(const WorkerRequest& request);
  // The index of the user with that name; adds one without a cap if there is none.
  int InternUser(const std::string& name);
  // Null if there is no such job.
  const Job* Find(JobId id) const;
  Job* Find(JobId id);
};

}  // namespace renzan::cluster
