#pragma once

// The cluster configuration file: pools of nodes, queues with quotas, users with caps.
//
//   topology: [rack]
//   pools:
//     own:  {nodes: 4, resources: {cpu: 32, memory: 256GiB, gpu: 8}, labels: {gpu_model: a100}}
//     spot: {nodes: 0..20, resources: {...}, spot: true, price_per_hour: 9.5, boot: 3m}
//   queues:
//     vision: {guaranteed: {gpu: 16}, limit: {gpu: 24}}
//     ranking: {parent: research, fair_share: {half_life: 7d}}
//     research: {guaranteed: {gpu: 32}}
//     default: {max_priority: 10, members: {users: [ann], groups: [ml]}, not_preemptible: false}
//   users: {ann: {max_gpus: 8}}
//   worker_classes: {small: {cpu: 4, memory: 32GiB, gpu: 1}}
//   budget_per_hour: 100
//   scheduling: {order: least_attained_service, service_levels: [1h, 4h, 16h, 64h, 256h],
//     min_between_resizes: 10m, max_checkpoint_interval: 10m, overdue_after: 24h}
//   limits: {max_priority: 0, max_pending_jobs: 10000, max_pending_specs: 64MiB}
//   retention: {keep_ended_for: 90d}
//   node_health: {early_failure: 5m, suspect_after: 3, suspect_for: 1h,
//     check: [/usr/local/bin/check-node], check_interval: 5m, check_timeout: 30s}
//   disk: {keep_free: 256MiB, max_per_job: 200GiB}
//   cgroups: {hold: true, cpu: true, memory: true, parent: /sys/fs/cgroup/renzan}
//   enforce_memory: true
//   simulated: false

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "renzan/base/config/config.h"
#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/spec/job_spec.h"
#include "renzan/cluster/spec/queue_rights.h"
#include "renzan/cluster/spec/worker_classes.h"

namespace renzan::cluster::spec {

struct ClusterConfig {
  struct PoolConfig {
    std::string nodes = "1";  // "4", or "0..20": scaled
    JobSpec::PerWorker resources;
    std::map<std::string, std::string> labels;
    // Number of topology domains per level, over which nodes are spread: {rack: 4} gives own-rack-0
    // to -3. Each level has a multiple of the wider level's number, so that domains are nested.
    std::map<std::string, int64_t> domains;
    bool spot = false;
    double price_per_hour = 0;
    std::string boot = "0s";
    std::string idle = "10m";
    double interruptions_per_hour = 0;
    void Describe(ConfigFields& fields);
  };
  struct QuotaConfig {
    // -1 or empty: not set.
    double cpu = -1;
    std::string memory;
    int64_t gpu = -1;
    std::map<std::string, int64_t> other;
    void Describe(ConfigFields& fields);
  };
  struct QueueConfig {
    QuotaConfig guaranteed, limit;
    std::string parent;                       // another queue, which has no jobs; empty: none
    std::string fair_share_half_life = "0s";  // "0s": users do not count
    QueueRights rights;
    void Describe(ConfigFields& fields);
  };
  struct UserConfig {
    int64_t max_gpus = -1;  // -1: no cap
    void Describe(ConfigFields& fields);
  };
  // See ScheduleOptions.
  struct SchedulingConfig {
    std::string min_between_resizes = "10m";
    std::string max_checkpoint_interval = "10m";
    std::string overdue_after = "24h";
    std::string order = "least_attained_service";  // "gittins", "first_come"
    std::vector<std::string> service_levels = {"1h", "4h", "16h", "64h", "256h"};
    void Describe(ConfigFields& fields);
  };

  // For users other than root and the daemon's own.
  struct LimitsConfig {
    int64_t max_priority = 0;                 // in queues that do not have one of their own
    int64_t max_pending_jobs = 10'000;        // of one user
    std::string max_pending_specs = "64MiB";  // of one user, with environments
    bool not_preemptible = true;              // they may submit jobs with preemptible: false
    bool grand_challenge = false;             // and with grand_challenge: true
    void Describe(ConfigFields& fields);
  };
  struct RetentionConfig {
    // "0s": forever. Job directories may contain models, so by default only jobs are removed that
    // have left nothing but their workers' output.
    std::string keep_ended_for = "0s", keep_output_for = "0s";
    int64_t keep_attempts = 10;  // of a job that has not ended
    void Describe(ConfigFields& fields);
    int64_t keep_ended_ms() const;  // 0: forever
    int64_t keep_output_ms() const;
  };

  // Nodes that fail the jobs that start on them.
  struct NodeHealthConfig {
    // A job that fails sooner than this after its start avoids the node from then on.
    std::string early_failure = "5m";
    // So many jobs, of several users or such that then ran elsewhere, make their node suspected:
    // for this long ("0s": never) nothing starts there.
    int64_t suspect_after = 3;
    std::string suspect_for = "1h";
    // Run for each node, also while jobs run there, every `check_interval`; empty: no check. While
    // it fails, nothing starts there.
    std::vector<std::string> check;
    std::string check_interval = "5m";
    std::string check_timeout = "30s";
    void Describe(ConfigFields& fields);
    // Only after the configuration has been read.
    int64_t early_failure_ms() const;
    int64_t suspect_for_ms() const;
    int64_t check_interval_ms() const;
    int64_t check_timeout_ms() const;
  };

  // Of the daemon's state directory.
  struct DiskConfig {
    // While less is free, no job starts or is accepted. "0": the daemon does not look.
    std::string keep_free = "256MiB";
    // What the files of one job there may take; empty: no limit.
    std::string max_per_job;
    void Describe(ConfigFields& fields);
    int64_t keep_free_bytes() const;
    int64_t max_per_job_mib() const;  // 0: no limit
  };

  // Control groups for jobs, by the daemon; docs/cluster.md.
  struct CgroupsConfig {
    bool hold = true;  // where the daemon may make them
    bool cpu = false, memory = false;
    std::string parent;
    void Describe(ConfigFields& fields);
  };

  std::vector<std::string> topology;
  std::map<std::string, PoolConfig> pools;
  std::map<std::string, QueueConfig> queues;  // if empty: one, "default", without quota
  std::map<std::string, UserConfig> users;
  WorkerClasses worker_classes;  // to which worker requests are rounded up; empty: no rounding
  double budget_per_hour = -1;   // -1: no limit
  SchedulingConfig scheduling;
  LimitsConfig limits;
  RetentionConfig retention;
  NodeHealthConfig node_health;  // by the daemon
  DiskConfig disk;
  CgroupsConfig cgroups;
  std::string artifacts_timeout = "10m";  // for copying a job's artifacts
  int64_t artifacts_timeout_ms() const;
  bool enforce_memory = true;  // by the daemon; the simulator ignores it
  // The daemon's machine stands in for larger ones: its nodes may have more GPUs than it has.
  bool simulated = false;

  void Describe(ConfigFields& fields);
};

ClusterConfig ReadClusterConfig(const std::string& path,
                                std::span<const std::string> overrides = {});
// As YAML that reads back to the same values, with all defaults; `with_docs`: with a comment for
// each key.
std::string PrintClusterConfig(ClusterConfig config, bool with_docs = false);

// A cluster without jobs: pools, queues, users, and the minimum number of nodes of each pool
// ("own-0", "own-1", ...), ready at `now`. Throws Error kConfig if queues are guaranteed more than
// the pools can have, or a resource does not exist.
Snapshot MakeSnapshot(const ClusterConfig& config, TimeMs now);

// What a worker that requests `worker` gets (RoundUpToClass); none if it is larger than any class.
// Kinds are the snapshot's.
std::optional<Resources> RoundedUp(const Snapshot& snapshot, const WorkerClasses& offered,
                                   const Resources& worker);

// Throws Error kConfig if nodes on a machine with this many GPUs can have more of them together,
// unless they are simulated.
void RequireGpus(const ClusterConfig& config, int64_t machine_gpus);

ScheduleOptions ScheduleOptionsOf(const ClusterConfig& config);

// What a job must satisfy when it is submitted, however the cluster changes later. Throws Error
// kNoPermission if its queue refuses it, kNoInput for a node that it excludes and that is none of
// the snapshot's, and kConfig for one whose name does not always mean the same machine: nodes that
// are bought take names of those that were returned.
void CheckSubmission(const Snapshot& snapshot, const JobSpec& spec, const Submitter& submitter);

// The scheduler's view of a pending job. Interns its request and user in `snapshot`, but does not
// add it to `snapshot.jobs`. Throws Error kNoInput for an unknown queue and kConfig for an unknown
// resource or topology level, with the nearest name.
Job MakeJob(Snapshot& snapshot, const JobSpec& spec, const std::string& user, JobId id, TimeMs now);

}  // namespace renzan::cluster::spec
