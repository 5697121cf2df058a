#include "renzan/cluster/spec/cluster_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan::cluster::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kWholeCluster = R"(
topology: [zone, rack]
pools:
  own:
    nodes: 4
    resources: {cpu: 32, memory: 256GiB, gpu: 8, other: {nic: 2}}
    labels: {gpu_model: a100}
    domains: {zone: 1, rack: 2}
  spot:
    nodes: 1..20
    resources: {cpu: 16, memory: 64GiB, gpu: 4}
    spot: true
    price_per_hour: 9.5
    boot: 3m
    idle: 5m
    interruptions_per_hour: 0.05
queues:
  vision: {guaranteed: {gpu: 16, other: {nic: 1}}, limit: {gpu: 24, cpu: 100.5}}
  default: {}
users: {ann: {max_gpus: 8}, bob: {}}
worker_classes: {small: {cpu: 4, memory: 32GiB, gpu: 1}}
budget_per_hour: 100
scheduling: {min_between_resizes: 5m, max_checkpoint_interval: 90s, overdue_after: 2h, service_levels: [1h, 10h]}
limits: {max_priority: 7, max_pending_jobs: 12, not_preemptible: false, grand_challenge: true}
retention: {keep_ended_for: 45d}
node_health: {early_failure: 90s, suspect_after: 4, suspect_for: 2h, check: [check-node, --all], check_interval: 10m, check_timeout: 5s}
disk: {keep_free: 1GiB, max_per_job: 200GiB}
cgroups: {hold: false, cpu: true, memory: true, parent: /sys/fs/cgroup/jobs}
enforce_memory: false
)";

ClusterConfig Read(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  const TemporaryDirectory dir;
  WriteFileAtomically(dir / "cluster.yaml", yaml);
  return ReadClusterConfig(dir / "cluster.yaml", overrides);
}

// The message of the kConfig error thrown on reading.
std::string ErrorOf(const std::string& yaml) {
  try {
    Read(yaml);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    return error.what();
  }
  return "no error";
}

// The same for a pool of 2 nodes with 4 GPUs each and one more line.
std::string ErrorWith(const std::string& line) {
  return ErrorOf("pools: {own: {nodes: 2, resources: {cpu: 8, gpu: 4}}}\n" + line);
}

// The same for a pool with only this key.
std::string PoolError(const std::string& key) { return ErrorOf("pools: {own: {" + key + "}}"); }

TEST(ClusterConfig, BecomesASnapshot) {
  const Snapshot snapshot = MakeSnapshot(Read(kWholeCluster), 1000);
  EXPECT_EQ(snapshot.now, 1000);
  EXPECT_THAT(snapshot.resource_names, ElementsAre("cpu", "memory", "gpu", "nic"));
  EXPECT_THAT(snapshot.topology_levels, ElementsAre("zone", "rack"));
  EXPECT_EQ(snapshot.budget_per_hour, 100);

  ASSERT_EQ(snapshot.pools.size(), 2u);
  const Pool& spot = snapshot.pools[1];
  EXPECT_EQ(spot.name, "spot");
  EXPECT_TRUE(spot.spot);
  EXPECT_EQ(spot.min_nodes, 1);
  EXPECT_EQ(spot.max_nodes, 20);
  EXPECT_EQ(spot.price_per_hour, 9.5);
  EXPECT_EQ(spot.boot_ms, 180'000);
  EXPECT_EQ(spot.idle_ms, 300'000);
  EXPECT_EQ(spot.interruptions_per_hour, 0.05);
  EXPECT_EQ(spot.capacity, (Resources{{16'000, 64 << 10, 4, 0}}));
  EXPECT_EQ(snapshot.pools[0].min_nodes, 4);
  EXPECT_EQ(snapshot.pools[0].max_nodes, 4);

  ASSERT_EQ(snapshot.queues.size(), 2u);  // by name
  EXPECT_EQ(snapshot.queues[0].name, "default");
  EXPECT_EQ(snapshot.queues[0].guaranteed, Resources());
  EXPECT_EQ(snapshot.queues[0].limit, Queue::Unlimited());
  EXPECT_EQ(snapshot.queues[1].guaranteed, (Resources{{0, 0, 16, 1}}));
  EXPECT_EQ(snapshot.queues[1].limit[kGpu], 24);
  EXPECT_EQ(snapshot.queues[1].limit[kCpu], 100'500);
  EXPECT_EQ(snapshot.queues[1].limit[kMemory], kUnlimited);

  ASSERT_EQ(snapshot.users.size(), 2u);
  EXPECT_EQ(snapshot.users[0].name, "ann");
  EXPECT_EQ(snapshot.users[0].max_gpus, 8);
  EXPECT_EQ(snapshot.users[1].max_gpus, kUnlimited);
}

TEST(ClusterConfig, NodesAreSpreadOverNestedDomains) {
  const Snapshot snapshot = MakeSnapshot(Read(kWholeCluster), 1000);
  std::vector<std::string> names, racks;
  for (const Node& node : snapshot.nodes) {
    names.push_back(node.name);
    if (node.pool == 0) racks.push_back(node.labels.at("rack"));
    EXPECT_EQ(node.state, NodeState::kReady);
    EXPECT_EQ(node.idle_since, 1000);
    EXPECT_EQ(node.spot, node.pool == 1);
    EXPECT_EQ(node.capacity, snapshot.pools[node.pool].capacity);
  }
  EXPECT_THAT(names, ElementsAre("own-0", "own-1", "own-2", "own-3", "spot-0"));
  EXPECT_THAT(racks, ElementsAre("own-rack-0", "own-rack-1", "own-rack-0", "own-rack-1"));
  EXPECT_EQ(snapshot.nodes[3].labels.at("zone"), "own-zone-0");
  EXPECT_EQ(snapshot.nodes[3].labels.at("gpu_model"), "a100");
}

TEST(ClusterConfig, ScheduleOptions) {
  const ScheduleOptions options = ScheduleOptionsOf(Read(kWholeCluster));
  EXPECT_EQ(options.min_between_resizes_ms, 300'000);
  EXPECT_EQ(options.max_checkpoint_interval_ms, 90'000);
  EXPECT_EQ(options.overdue_after_ms, 7'200'000);
  EXPECT_THAT(options.levels.thresholds_ms, ElementsAre(kHour, 10 * kHour));
}

TEST(ClusterConfig, FirstComeHasOneLevelOfService) {
  EXPECT_THAT(ScheduleOptionsOf(Read("pools: {own: {}}\nscheduling: {order: first_come}"))
                  .levels.thresholds_ms,
              IsEmpty());
}

TEST(ClusterConfig, GittinsHasTheSameLevels) {
  const ScheduleOptions options =
      ScheduleOptionsOf(Read("pools: {own: {}}\nscheduling: {order: gittins}"));
  EXPECT_TRUE(options.levels.gittins);
  EXPECT_EQ(options.levels.thresholds_ms, ScheduleOptions().levels.thresholds_ms);
}

TEST(ClusterConfig, ScheduleOptionsHaveTheSchedulersDefaults) {
  const ScheduleOptions options = ScheduleOptionsOf(ClusterConfig()), defaults;
  EXPECT_EQ(options.min_between_resizes_ms, defaults.min_between_resizes_ms);
  EXPECT_EQ(options.max_checkpoint_interval_ms, defaults.max_checkpoint_interval_ms);
  EXPECT_EQ(options.overdue_after_ms, defaults.overdue_after_ms);
  EXPECT_EQ(options.levels.thresholds_ms, defaults.levels.thresholds_ms);
  EXPECT_EQ(options.levels.gittins, defaults.levels.gittins);
}

TEST(ClusterConfig, MemoryIsEnforcedByDefault) {
  EXPECT_TRUE(Read("pools: {own: {}}").enforce_memory);
  EXPECT_FALSE(Read(kWholeCluster).enforce_memory);
  EXPECT_EQ(Read(kWholeCluster).disk.keep_free_bytes(), int64_t{1} << 30);
  EXPECT_EQ(Read(kWholeCluster).disk.max_per_job_mib(), 200 << 10);
  EXPECT_EQ(Read("pools: {own: {}}").disk.max_per_job_mib(), 0);
  EXPECT_EQ(Read("pools: {own: {}}\ndisk: {keep_free: 0}").disk.keep_free_bytes(), 0);
  EXPECT_THAT(ErrorWith("disk: {max_per_job: 0}"), HasSubstr("max_per_job"));
  EXPECT_THAT(ErrorWith("disk: {keep_free: much}"), HasSubstr("such as 512MiB"));
  EXPECT_THAT(ErrorWith("enforce_memory: 3"), HasSubstr("cluster.yaml:2:17: enforce_memory"));
}

TEST(ClusterConfig, ControlGroupsHoldJobsByDefaultAndLimitNothing) {
  const ClusterConfig::CgroupsConfig by_default = Read("pools: {own: {}}").cgroups;
  EXPECT_TRUE(by_default.hold);
  EXPECT_FALSE(by_default.cpu || by_default.memory);
  EXPECT_EQ(by_default.parent, "");
  const ClusterConfig::CgroupsConfig given = Read(kWholeCluster).cgroups;
  EXPECT_FALSE(given.hold);
  EXPECT_TRUE(given.cpu && given.memory);
  EXPECT_EQ(given.parent, "/sys/fs/cgroup/jobs");
  EXPECT_THAT(ErrorWith("cgroups: {parent: jobs}"), HasSubstr("must be an absolute path"));
}

TEST(ClusterConfig, RejectsInvalidScheduling) {
  EXPECT_THAT(ErrorWith("scheduling: {overdue_after: later}"),
              HasSubstr("cluster.yaml:2:29: scheduling.overdue_after must be a duration"));
  EXPECT_THAT(ErrorWith("scheduling: {min_between_resizes: -1s}"),
              HasSubstr("min_between_resizes must be a duration"));
  EXPECT_THAT(ErrorWith("scheduling: {max_checkpoint_interval: 10}"),
              HasSubstr("max_checkpoint_interval must be a duration"));
  EXPECT_THAT(ErrorWith("scheduling: {max_checkpoint_interval: 0s}"),
              HasSubstr("max_checkpoint_interval must be more than 0"));
  EXPECT_THAT(ErrorWith("scheduling: {service_levels: [2h, 1h]}"),
              HasSubstr("scheduling.service_levels has '1h': they must be durations"));
  EXPECT_THAT(ErrorWith("scheduling: {service_levels: [soon]}"), HasSubstr("has 'soon'"));
  EXPECT_THAT(ErrorWith("scheduling: {order: fifo}"), HasSubstr("least_attained_service"));
  EXPECT_THAT(ErrorWith("scheduling: {overdue_aftr: 1h}"),
              HasSubstr("did you mean 'overdue_after'?"));
}

TEST(ClusterConfig, LimitsAndRetention) {
  const ClusterConfig config = Read(kWholeCluster);
  EXPECT_EQ(config.limits.max_priority, 7);
  EXPECT_EQ(config.limits.max_pending_jobs, 12);
  EXPECT_FALSE(config.limits.not_preemptible);
  EXPECT_TRUE(config.limits.grand_challenge);
  EXPECT_EQ(config.retention.keep_ended_ms(), 45 * 86'400'000LL);
  EXPECT_EQ(config.retention.keep_output_ms(), 0) << "nothing is deleted unless that is wanted";
  EXPECT_FALSE(ClusterConfig().limits.grand_challenge);
  EXPECT_THAT(ErrorWith("limits: {max_pending_jobs: -1}"), HasSubstr("out of range"));
  EXPECT_THAT(ErrorWith("limits: {max_priority: 2000000}"), HasSubstr("out of range"));
  EXPECT_THAT(ErrorWith("retention: {keep_ended_for: long}"), HasSubstr("must be a duration"));
}

TEST(ClusterConfig, RightsOfQueues) {
  const ClusterConfig whole = Read(R"(
pools: {own: {}}
queues:
  open: {}
  vision: {members: {users: [bob, ann], groups: [vision]}, max_priority: 10, not_preemptible: false}
  quiet: {members: {groups: [all]}, max_priority: -5}
)");
  EXPECT_EQ(whole.queues.at("open").rights, QueueRights());
  EXPECT_EQ(whole.queues.at("vision").rights,
            (QueueRights{.members = QueueMembers{{"ann", "bob"}, {"vision"}, {}},
                         .max_priority = 10,
                         .only_preemptible = true}));
  EXPECT_EQ(whole.queues.at("quiet").rights,
            (QueueRights{.members = QueueMembers{{}, {"all"}, {}}, .max_priority = -5}));
  // Whatever is printed reads back to the same rights.
  const ClusterConfig again = Read(PrintClusterConfig(whole, /*with_docs=*/true));
  for (const auto& [name, queue] : whole.queues)
    EXPECT_EQ(again.queues.at(name).rights, queue.rights) << name;
  // By default nobody may put their jobs before those of others.
  EXPECT_EQ(whole.limits.max_priority, 0);
}

TEST(ClusterConfig, RejectsRightsThatNobodyCouldHave) {
  EXPECT_THAT(ErrorWith("queues: {a: {members: {users: []}}}"),
              HasSubstr("queues.a.members.users and the other lists of members are empty: nobody "
                        "could use the queue"));
  EXPECT_THAT(ErrorWith("queues: {a: {members: {users: [], groups: []}}}"), HasSubstr("nobody"));
  for (const char* empty : {"{}", "", "~"})
    EXPECT_THAT(ErrorWith(fmt::format("queues:\n  a:\n    members: {}\n", empty)),
                HasSubstr("queues.a.members is there, but empty"));
  EXPECT_EQ(ErrorWith("queues: {a: {members: {users: [], groups: [g]}}}"), "no error");
  EXPECT_THAT(ErrorWith("queues: {a: {members: {users: ['']}}}"), HasSubstr("is empty"));
  EXPECT_THAT(ErrorWith("queues: {a: {members: {users: ann}}}"), HasSubstr("[ann]"));
  EXPECT_THAT(ErrorWith("queues: {a: {members: {namespaces: [ads]}}}"),
              HasSubstr("valid keys are users, groups"));
  EXPECT_THAT(ErrorWith("queues: {a: {max_priority: 2000000}}"),
              HasSubstr("must be from -1000000 to 1000000"));
  EXPECT_THAT(ErrorWith("queues: {a: {max_priority: high}}"), HasSubstr("a whole number"));
}

TEST(ClusterConfig, NodeHealth) {
  const ClusterConfig::NodeHealthConfig health = Read(kWholeCluster).node_health;
  EXPECT_EQ(health.early_failure_ms(), 90'000);
  EXPECT_EQ(health.suspect_after, 4);
  EXPECT_EQ(health.suspect_for_ms(), 7'200'000);
  EXPECT_THAT(health.check, ElementsAre("check-node", "--all"));
  EXPECT_EQ(health.check_interval_ms(), 600'000);
  EXPECT_EQ(health.check_timeout_ms(), 5000);
  // Suspicion is on by default, and there is no check.
  EXPECT_EQ(Read("pools: {own: {}}").node_health.suspect_for_ms(), 3'600'000);
  EXPECT_THAT(Read("pools: {own: {}}").node_health.check, IsEmpty());
  EXPECT_THAT(ErrorWith("node_health: {suspect_after: 1}"), HasSubstr("out of range"));
  EXPECT_THAT(ErrorWith("node_health: {check: ['']}"), HasSubstr("must name a program"));
  EXPECT_THAT(ErrorWith("node_health: {check_interval: 0s}"), HasSubstr("must be more than 0"));
}

TEST(ClusterConfig, PrintedYamlReadsBack) {
  const std::string text = PrintClusterConfig(Read(kWholeCluster));
  EXPECT_EQ(PrintClusterConfig(Read(text)), text);
  for (const char* value : {"zone", "9.5", "100.5", "1..20", "ann", "a100", "256GiB", "90s", "45d",
                            "enforce_memory: false"})
    EXPECT_THAT(text, HasSubstr(value));
}

TEST(ClusterConfig, WithoutQueuesThereIsADefaultQueue) {
  const Snapshot snapshot = MakeSnapshot(Read("pools: {own: {}}"), 0);
  ASSERT_EQ(snapshot.queues.size(), 1u);
  EXPECT_EQ(snapshot.queues[0].name, "default");
}

TEST(ClusterConfig, RejectsInvalidPools) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("pools must have at least one"));
  EXPECT_THAT(PoolError("nodes: 0"), HasSubstr("cluster.yaml:1:22: pools.own.nodes must be"));
  EXPECT_THAT(PoolError("nodes: 5..2"), HasSubstr("pools.own.nodes must be"));
  EXPECT_THAT(PoolError("node: 5"), HasSubstr("did you mean 'nodes'?"));
  EXPECT_THAT(PoolError("resources: {memory: lots}"), HasSubstr("resources.memory must be"));
  EXPECT_THAT(PoolError("boot: soon"), HasSubstr("boot must be a duration"));
  EXPECT_THAT(PoolError("idle: -1s"), HasSubstr("idle must be a duration"));
  EXPECT_THAT(PoolError("price_per_hour: -1"), HasSubstr("out of range"));
  EXPECT_THAT(PoolError("interruptions_per_hour: .nan"), HasSubstr("out of range"));
  EXPECT_THAT(ErrorOf("pools: {'a b': {}}"), HasSubstr("has the pool 'a b': a name must be"));
  EXPECT_THAT(PoolError("resources: {other: {a: 1, b: 1, c: 1, d: 1, e: 1, f: 1}}"),
              HasSubstr("6 named resources (a, b, c, d, e, f), but at most 5"));
}

TEST(ClusterConfig, NodesHaveNoMoreGpusThanTheMachineUnlessSimulated) {
  ClusterConfig config;
  config.pools["own"] = {.nodes = "2", .resources = {.gpu = 2}};
  config.pools["spot"] = {.nodes = "0..3", .resources = {.gpu = 1}};
  config.pools["cpus"].nodes = "100";
  RequireGpus(config, 7);
  try {
    RequireGpus(config, 6);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_THAT(error.what(), HasSubstr("the nodes have 7 GPUs together (2 nodes of 2 in own, 3 "
                                        "nodes of 1 in spot), but this machine has 6"));
  }
  config.simulated = true;
  RequireGpus(config, 0);
}

TEST(ClusterConfig, RejectsInvalidTopology) {
  EXPECT_THAT(PoolError("domains: {rack: 2}"),
              HasSubstr("has own with domains of 'rack', which topology does not declare"));
  EXPECT_THAT(ErrorOf("topology: [rack]\npools: {own: {domains: {rak: 2}}}"),
              HasSubstr("did you mean 'rack'?"));
  EXPECT_THAT(ErrorOf("topology: [rack]\npools: {own: {domains: {rack: 0}}}"),
              HasSubstr("has rack: 0"));
  EXPECT_THAT(ErrorOf("topology: [rack]\npools: {own: {domains: {rack: 2}, labels: {rack: r}}}"),
              HasSubstr("both a label rack and domains of rack"));
  EXPECT_THAT(ErrorOf("topology: [zone, rack]\npools: {own: {domains: {zone: 2, rack: 3}}}"),
              HasSubstr("3 domains of rack, which must be a multiple of the 2"));
  EXPECT_THAT(ErrorWith("topology: [rack, rack]"), HasSubstr("has the level rack twice"));
  EXPECT_THAT(ErrorWith("topology: [host]"), HasSubstr("leave it out"));
  EXPECT_THAT(ErrorWith("topology: ['a b']"), HasSubstr("has the level 'a b'"));
}

TEST(ClusterConfig, RejectsInvalidQuotas) {
  EXPECT_THAT(ErrorWith("queues: {a: {guaranteed: {gpu: 5}}, b: {guaranteed: {gpu: 4}}}"),
              EndsWith("cluster.yaml: queues are guaranteed 9 of gpu together, but the pools have "
                       "at most 8: guarantee less or add nodes"));
  EXPECT_EQ(ErrorWith("queues: {a: {guaranteed: {gpu: 4}}, b: {guaranteed: {gpu: 4}}}"),
            "no error");
  EXPECT_THAT(ErrorWith("queues: {a: {guaranteed: {memory: 1MiB}}}"),
              HasSubstr("guaranteed 1 MiB of memory together, but the pools have at most 0"));
  EXPECT_THAT(ErrorWith("queues: {a: {guaranteed: {gpu: 4}, limit: {gpu: 3}}}"),
              HasSubstr("queue a: 4 gpu is guaranteed, more than its limit of 3"));
  EXPECT_THAT(ErrorWith("queues: {a: {guaranteed: {gpu: -2}}}"), HasSubstr("out of range"));
  EXPECT_THAT(ErrorWith("queues: {a: {limit: {cpu: -0.5}}}"), HasSubstr("cpu must be from 0"));
  EXPECT_THAT(ErrorWith("queues: {a: {limit: {memory: x}}}"), HasSubstr("limit.memory must"));
  EXPECT_THAT(ErrorWith("queues: {a: {limit: {other: {nic: 1}}}}"),
              HasSubstr("queue a: limit names the resource 'nic', which no pool of nodes has"));
  EXPECT_THAT(ErrorWith("queues: {'a/b': {}}"), HasSubstr("has the queue 'a/b'"));
  EXPECT_THAT(ErrorWith("users: {'a b': {}}"), HasSubstr("has the user 'a b'"));
  EXPECT_THAT(ErrorWith("users: {ann: {max_gpus: -2}}"), HasSubstr("out of range"));
  EXPECT_THAT(ErrorWith("budget_per_hour: -5"), HasSubstr("must not be negative"));
}

class MakeJobTest : public ::testing::Test {
 protected:
  Job Make(const std::string& lines) {
    const JobSpec spec = ReadJobSpec("command: [a]\n" + lines, "job.yaml");
    return MakeJob(snapshot_, spec, "ann", 7, 5000);
  }
  std::string ErrorOf(const std::string& lines, ErrorCode code = ErrorCode::kConfig) {
    try {
      Make(lines);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      return error.what();
    }
    return "no error";
  }

  Snapshot snapshot_ = MakeSnapshot(Read(kWholeCluster), 1000);
};

TEST_F(MakeJobTest, CopiesEverything) {
  const Job job = Make(R"(
queue: vision
priority: 4
replicas: 2..3
resources: {cpu: 1.5, memory: 1GiB, gpu: 2, other: {nic: 1}}
constraints: {required: {gpu_model: a100}, preferred: {a: b}, topology: rack, topology_required: true}
checkpoint: {on_stop: true}
grace: 1m
preemptible: false
grand_challenge: true
)");
  EXPECT_EQ(job.id, 7);
  EXPECT_EQ(snapshot_.queues[job.queue].name, "vision");
  EXPECT_EQ(snapshot_.users[job.user].name, "ann");
  EXPECT_EQ(snapshot_.users.size(), 2u);
  EXPECT_EQ(job.priority, 4);
  EXPECT_EQ(job.min_workers, 2);
  EXPECT_EQ(job.max_workers, 3);
  EXPECT_TRUE(job.checkpoints);
  EXPECT_FALSE(job.preemptible);
  EXPECT_TRUE(job.quota_exempt);
  EXPECT_EQ(job.submitted, 5000);
  EXPECT_EQ(job.grace_ms, 60'000);
  EXPECT_EQ(job.max_checkpoint_interval_ms, 600'000);
  EXPECT_EQ(job.state, JobState::kPending);
  const WorkerRequest& request = snapshot_.worker_requests.at(job.request);
  EXPECT_EQ(request.per_worker, (Resources{{1500, 1024, 2, 1}}));
  EXPECT_EQ(request.required, (Labels{{"gpu_model", "a100"}}));
  EXPECT_EQ(request.preferred, (Labels{{"a", "b"}}));
  EXPECT_EQ(request.topology_level, "rack");
  EXPECT_TRUE(request.topology_required);
  EXPECT_TRUE(snapshot_.jobs.empty());
}

TEST_F(MakeJobTest, ExcludesNodes) {
  const Job job = Make("constraints: {exclude_nodes: [own-3, own-1, own-3]}");
  EXPECT_THAT(snapshot_.worker_requests.at(job.request).excluded_nodes,
              ElementsAre("own-1", "own-3"));
  const auto error = [&](const std::string& nodes) -> std::string {
    try {
      CheckSubmission(
          snapshot_,
          ReadJobSpec("command: [a]\nconstraints: {exclude_nodes: " + nodes + "}", "job.yaml"),
          {.user = "ann"});
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error("[own-0, own-3]"), "no error");
  EXPECT_THAT(error("[own-4]"), HasSubstr("there is no node 'own-4'"));
  EXPECT_THAT(error("[spot-0]"), HasSubstr("bought and returned"));
  EXPECT_THAT(error("['a b']"), HasSubstr("cannot be a node's name"));
}

TEST_F(MakeJobTest, ASubmissionIsCheckedByTheRightsOfItsQueue) {
  ClusterConfig config;
  config.queues["ads"].rights.only_preemptible = true;
  config.queues["vision"] = {};
  const Snapshot snapshot = MakeSnapshot(config, 0);
  const auto error = [&](const std::string& lines) -> std::string {
    try {
      CheckSubmission(snapshot, ReadJobSpec("command: [a]\n" + lines, "job.yaml"),
                      {.user = "ann", .max_priority = 0});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kNoPermission);
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error("queue: ads\npreemptible: false"),
            "preemptible: false: jobs in queue 'ads' must be preemptible "
            "(queues.ads.not_preemptible)");
  EXPECT_EQ(error("queue: ads"), "no error");
  EXPECT_EQ(error("queue: vision\npreemptible: false"), "no error");
  EXPECT_THAT(error("queue: vision\npriority: 1"), HasSubstr("may have at most 0"));
}

TEST_F(MakeJobTest, SharesRequests) {
  const Job first = Make("resources: {gpu: 1}"), second = Make("resources: {gpu: 1}");
  EXPECT_EQ(first.request, second.request);
  EXPECT_NE(Make("resources: {gpu: 2}").request, first.request);
}

// As of every command that names a node.
TEST_F(MakeJobTest, AnUnknownNodeIsAnInputThatDoesNotExist) {
  const JobSpec spec =
      ReadJobSpec("command: [a]\nconstraints: {exclude_nodes: [own-7]}", "job.yaml");
  try {
    CheckSubmission(snapshot_, spec, {.administrator = true});
    ADD_FAILURE() << "it was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNoInput) << error.what();
  }
}

TEST_F(MakeJobTest, SuggestsTheNearestName) {
  EXPECT_EQ(ErrorOf("queue: visoin", ErrorCode::kNoInput),
            "there is no queue 'visoin': did you mean 'vision'?");
  EXPECT_EQ(ErrorOf("queue: zzzzzz", ErrorCode::kNoInput),
            "there is no queue 'zzzzzz': choose one of default, vision");
  EXPECT_THAT(ErrorOf("resources: {other: {nics: 1}}"),
              HasSubstr("the job names the resource 'nics', which no pool of nodes has: did you "
                        "mean 'nic'?"));
  EXPECT_THAT(ErrorOf("constraints: {topology: racks}"),
              HasSubstr("there is no topology level 'racks': did you mean 'rack'?"));
  EXPECT_EQ(ErrorOf("constraints: {topology: host}"), "no error");
}

}  // namespace
}  // namespace renzan::cluster::spec
