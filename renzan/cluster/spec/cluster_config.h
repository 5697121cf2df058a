#pragma once

// A cluster as its owner writes it: pools of nodes, queues with quotas, users with caps.
//
//   topology: [rack]
//   pools:
//     own:  {nodes: 4, resources: {cpu: 32, memory: 256GiB, gpu: 8}, labels: {gpu_model: a100}}
//     spot: {nodes: 0..20, resources: {...}, spot: true, price_per_hour: 9.5, boot: 3m}
//   queues:
//     vision: {guaranteed: {gpu: 16}, limit: {gpu: 24}}
//     default: {}
//   users: {ann: {max_gpus: 8}}
//   worker_classes: {small: {cpu: 4, memory: 32GiB, gpu: 1}, whole: {cpu: 32, memory: 256GiB, gpu:
//   8}} budget_per_hour: 100 scheduling: {min_between_resizes: 10m, max_checkpoint_interval: 10m,
//   overdue_after: 24h} limits: {max_priority: 100, max_pending_jobs: 10000, max_pending_specs:
//   64MiB} retention: {keep_ended_for: 90d} enforce_memory: true

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "renzan/base/config.h"
#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/spec/job_spec.h"
#include "renzan/cluster/spec/worker_classes.h"

namespace renzan::cluster::spec {

struct ClusterConfig {
  struct PoolConfig {
    std::string nodes = "1";  // "4", or "0..20": scaled
    JobSpec::PerWorker resources;
    std::map<std::string, std::string> labels;
    // Nodes are dealt to so many domains of each topology level: {rack: 4} makes own-rack-0 to -3.
    // Each level has a multiple of the number of the wider one, so that domains are nested.
    std::map<std::string, int64_t> domains;
    bool spot = false;
    double price_per_hour = 0;
    std::string boot = "0s";
    std::string idle = "10m";
    double interruptions_per_hour = 0;
    void Describe(ConfigFields& fields);
  };
  struct QuotaConfig {
    // -1 or empty: not mentioned.
    double cpu = -1;
    std::string memory;
    int64_t gpu = -1;
    std::map<std::string, int64_t> other;
    void Describe(ConfigFields& fields);
  };
  struct QueueConfig {
    QuotaConfig guaranteed, limit;
    void Describe(ConfigFields& fields);
  };
  struct UserConfig {
    int64_t max_gpus = -1;  // -1: no cap
    void Describe(ConfigFields& fields);
  };
  // ScheduleOptions, which says what they mean.
  struct SchedulingConfig {
    std::string min_between_resizes = "10m";
    std::string max_checkpoint_interval = "10m";
    std::string overdue_after = "24h";
    void Describe(ConfigFields& fields);
  };

  // Of users who are neither root nor the daemon's own.
  struct LimitsConfig {
    int64_t max_priority = 100;
    int64_t max_pending_jobs = 10'000;        // of one user
    std::string max_pending_specs = "64MiB";  // of one user, all specifications together
    bool not_preemptible = true;              // they may submit jobs with preemptible: false
    bool grand_challenge = false;             // and with grand_challenge: true
    void Describe(ConfigFields& fields);
  };
  struct RetentionConfig {
    // "0s": for ever. Models are in the directories of jobs: nothing is removed unasked.
    std::string keep_ended_for = "0s";
    int64_t keep_attempts = 10;  // of a job that has not ended
    void Describe(ConfigFields& fields);
    int64_t keep_ended_ms() const;  // after it has been read; 0: for ever
  };

  std::vector<std::string> topology;
  std::map<std::string, PoolConfig> pools;
  std::map<std::string, QueueConfig> queues;  // without any: one, "default", without quota
  std::map<std::string, UserConfig> users;
  WorkerClasses worker_classes;  // to which workers are rounded up; empty: as they ask
  double budget_per_hour = -1;   // -1: none
  SchedulingConfig scheduling;
  LimitsConfig limits;
  RetentionConfig retention;
  std::string artifacts_timeout = "10m";  // of copying those of a job
  int64_t artifacts_timeout_ms() const;   // after it has been read
  bool enforce_memory = true;             // of jobs of the daemon; a simulation has none

  void Describe(ConfigFields& fields);
};

ClusterConfig ReadClusterConfig(const std::string& path,
                                std::span<const std::string> overrides = {});
// As YAML that reads back to the same values, every default written out; `with_docs`: with what
// each key means.
std::string PrintClusterConfig(ClusterConfig config, bool with_docs = false);

// An empty cluster of that configuration: pools, queues, users, and the least number of nodes of
// each pool ("own-0", "own-1", ...), ready at `now`. Throws Error kConfig where quotas guarantee
// more than the pools can have, or names are impossible.
Snapshot MakeSnapshot(const ClusterConfig& config, TimeMs now);

// What a worker that asks for `worker` gets from the menu (RoundUpToClass); none: it is larger than
// any on it. Kinds are the snapshot's.
std::optional<Resources> RoundedUp(const Snapshot& snapshot, const WorkerClasses& offered,
                                   const Resources& worker);

// How the scheduler is to decide on it.
ScheduleOptions ScheduleOptionsOf(const ClusterConfig& config);

// The node number `number` of a pool.
Node MakeNode(const Snapshot& snapshot, int pool, int number);

// The job as the scheduler sees it, pending; interns its request and user in `snapshot` but does
// not add it to `snapshot.jobs`. Throws Error kConfig for a queue that does not exist (with the
// nearest name), a resource that no node has a name for, or a topology level that is not declared.
Job MakeJob(Snapshot& snapshot, const JobSpec& spec, const std::string& user, JobId id, TimeMs now);

}  // namespace renzan::cluster::spec
