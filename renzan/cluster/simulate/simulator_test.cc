#include "renzan/cluster/simulate/simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/error.h"
#include "renzan/cluster/simulate/generate.h"
#include "renzan/cluster/simulate/metrics.h"
#include "renzan/cluster/simulate/report.h"

namespace renzan::cluster::simulate {
namespace {

using testing::ElementsAre;

Snapshot Cluster(int nodes, int gpus) {
  Resources capacity;
  capacity[kCpu] = 4000 * gpus;
  capacity[kMemory] = 1024 * gpus;
  capacity[kGpu] = gpus;
  Snapshot cluster;
  cluster.pools = {{.name = "own", .capacity = capacity, .min_nodes = nodes, .max_nodes = nodes}};
  cluster.queues = {{.name = "default"}};
  return cluster;
}

WorkloadJob MakeJob(TimeMs submitted_s, int workers, int gpus, TimeMs work_s, int priority = 0) {
  WorkloadJob job{.submitted = submitted_s * kSecond,
                  .priority = priority,
                  .min_workers = workers,
                  .max_workers = workers,
                  .work_ms = work_s * kSecond};
  job.per_worker[kCpu] = 4000 * gpus;
  job.per_worker[kMemory] = 1024 * gpus;
  job.per_worker[kGpu] = gpus;
  return job;
}

// With the nodes that the jobs are for, and their queues.
Workload GenerateFor(Snapshot& cluster, const GenerateOptions& options) {
  const Pool& pool = cluster.pools[0];
  for (int node = 0; node < pool.min_nodes; ++node)
    cluster.nodes.push_back({.name = fmt::format("own-{}", node),
                             .pool = 0,
                             .capacity = pool.capacity,
                             .spot = pool.spot});
  Workload jobs = GenerateWorkload(options, cluster);
  MakeQueues(jobs, Quotas::kNone, cluster);
  return jobs;
}

std::vector<TimeMs> EndsInSeconds(const SimulationResult& result) {
  std::vector<TimeMs> ends;
  for (const JobRecord& job : result.jobs) ends.push_back(job.end.value_or(-1) / kSecond);
  return ends;
}

SimulationResult RunPolicy(const std::string& policy, const Snapshot& cluster, const Workload& jobs,
                           SimulatorOptions options = {}) {
  options.check = true;
  SimulationResult result = Simulate(cluster, jobs, *MakePolicy(policy, 1), options);
  EXPECT_THAT(result.violations, ElementsAre()) << policy;
  return result;
}

// All time that jobs held resources was useful, lost or overhead, and all work was done exactly.
void ExpectAccountsBalance(const SimulationResult& result, const Workload& workload) {
  int64_t demanded = 0, accounted = 0;
  for (const WorkloadJob& job : workload) demanded += job.work_ms * job.gpus();
  int64_t useful = 0;
  for (const JobRecord& job : result.jobs) {
    useful += job.useful * job.gpus_per_worker;
    accounted += (job.useful + job.lost + job.overhead) * job.gpus_per_worker;
  }
  EXPECT_EQ(useful, demanded);
  EXPECT_EQ(static_cast<double>(accounted), result.totals.busy);
}

// Two nodes of two GPUs. Job 1 has one GPU until 100; job 2 needs all four, job 3 one GPU for a
// long time, job 4 one for a short time.
const Workload kFourJobs = {MakeJob(0, 1, 1, 100), MakeJob(1, 2, 2, 10), MakeJob(2, 1, 1, 500),
                            MakeJob(3, 1, 1, 20)};

struct Case {
  const char* policy;
  std::vector<TimeMs> ends_s;
};

class PolicyTable : public testing::TestWithParam<Case> {};

TEST_P(PolicyTable, CompletionTimes) {
  const SimulationResult result = RunPolicy(GetParam().policy, Cluster(2, 2), kFourJobs);
  EXPECT_EQ(EndsInSeconds(result), GetParam().ends_s);
  ExpectAccountsBalance(result, kFourJobs);
}

INSTANTIATE_TEST_SUITE_P(Baselines, PolicyTable,
                         testing::Values(
                             // No job overtakes job 2, which waits for job 1.
                             Case{"fifo", {100, 110, 610, 130}},
                             // Jobs 3 and 4 overtake job 2, which then waits for job 3.
                             Case{"backfill", {100, 512, 502, 23}},
                             // Job 4 ends before job 2 can start, job 3 would not.
                             Case{"backfill-easy", {100, 110, 610, 23}},
                             // As backfill: these jobs would lose their work if they were stopped.
                             Case{"las", {100, 512, 502, 23}},
                             Case{"srpt-oracle", {100, 512, 502, 23}}),
                         [](const auto& info) {
                           std::string name = info.param.policy;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// A job of 100 s that fails after 10 s and, the second time, after 30 s.
WorkloadJob FailingJob(int retries) {
  WorkloadJob job = MakeJob(0, 1, 1, 100);
  job.fails_after = {10 * kSecond, 30 * kSecond};
  job.retries = retries;
  return job;
}

TEST(Simulator, AJobThatFailsIsTriedAgainAfterAPause) {
  const SimulationResult result = RunPolicy("renzan", Cluster(1, 1), {FailingJob(2)});
  // Pauses of 1 s and 2 s.
  EXPECT_THAT(EndsInSeconds(result), ElementsAre(10 + 1 + 30 + 2 + 100));
  const JobRecord& job = result.jobs[0];
  EXPECT_EQ(job.failures, 2);
  EXPECT_FALSE(job.failed);
  EXPECT_EQ(job.waited_ms, 0) << "a pause is no waiting time";
  EXPECT_EQ(job.lost, 40 * kSecond);
  ExpectAccountsBalance(result, {FailingJob(2)});
}

TEST(Simulator, AJobWithoutRetriesLeftHasFailed) {
  const SimulationResult result = RunPolicy("renzan", Cluster(1, 1), {FailingJob(1)});
  EXPECT_THAT(EndsInSeconds(result), ElementsAre(10 + 1 + 30));
  const JobRecord& job = result.jobs[0];
  EXPECT_EQ(job.failures, 2);
  EXPECT_TRUE(job.failed);
  EXPECT_EQ(job.useful, 0);
  EXPECT_EQ(job.lost, 40 * kSecond);
  const Metrics metrics = Measure(result);
  EXPECT_EQ(metrics.failures, 2);
  EXPECT_EQ(metrics.failed_jobs, 1);
}

TEST(Simulator, AnotherJobUsesTheNodeDuringThePause) {
  for (const char* policy : {"renzan", "backfill", "fifo"}) {
    const SimulationResult result =
        RunPolicy(policy, Cluster(1, 1), {FailingJob(2), MakeJob(0, 1, 1, 50)});
    EXPECT_EQ(result.jobs[1].first_start, 10 * kSecond) << policy;
    EXPECT_EQ(result.jobs[0].waited_ms, 49 * kSecond) << policy << ": from the end of its pause";
  }
}

// It has failed on two of three nodes within minutes.
TEST(Simulator, AJobThatFailedEarlyAvoidsTheNode) {
  std::vector<int> nodes;
  const auto scheduler = MakeScheduler([&](const Snapshot& snapshot) {
    Decisions decisions = Schedule(snapshot, {});
    for (const Start& start : decisions.starts) nodes.push_back(start.placement[0].node);
    return decisions;
  });
  Simulate(Cluster(3, 1), {FailingJob(2)}, *scheduler);
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_EQ((std::set<int>(nodes.begin(), nodes.end()).size()), 3u);
}

TEST(Simulator, AccountsBalanceWhereJobsFail) {
  Snapshot cluster = Cluster(4, 8);
  const Workload jobs = GenerateFor(cluster, {.jobs = 400, .failing_share = 0.4});
  for (const char* policy : {"renzan", "fifo", "backfill", "kubernetes"}) {
    const SimulationResult result = RunPolicy(policy, cluster, jobs);
    EXPECT_THAT(result.never_ended, ElementsAre()) << policy;
    int64_t accounted = 0, demanded = 0, useful = 0;
    for (const JobRecord& job : result.jobs) {
      accounted += (job.useful + job.lost + job.overhead) * job.gpus_per_worker;
      useful += job.useful;
      if (!job.failed) demanded += jobs[job.id - 1].work_ms * jobs[job.id - 1].max_workers;
    }
    EXPECT_EQ(useful, demanded) << policy;
    EXPECT_EQ(static_cast<double>(accounted), result.totals.busy) << policy;
    const Metrics metrics = Measure(result);
    EXPECT_GT(metrics.failures, metrics.failed_jobs) << policy;
    EXPECT_GT(metrics.failed_jobs, 0) << policy;
  }
}

// Nothing that only watches changes what happens.
TEST(Simulator, AChecksResultIsTheResultWithoutIt) {
  Snapshot cluster = Cluster(8, 8);
  const Workload jobs = GenerateFor(cluster, {.jobs = 500, .seed = 3, .elastic_share = 0.5});
  const SimulationResult checked = RunPolicy("renzan", cluster, jobs);
  const SimulationResult result = Simulate(cluster, jobs, *MakePolicy("renzan", 1));
  EXPECT_EQ(result.totals.cycles, checked.totals.cycles);
  EXPECT_EQ(EndsInSeconds(result), EndsInSeconds(checked));
}

// One GPU. A job has run for two of its five hours when another comes. It takes 5 s to save and
// 30 s to restart.
std::vector<TimeMs> EndsOfTwo(const std::string& policy, TimeMs second_hours) {
  Workload jobs = {MakeJob(0, 1, 1, 5 * 3600), MakeJob(2 * 3600, 1, 1, second_hours * 3600)};
  for (WorkloadJob& job : jobs) job.checkpoints = true;
  const SimulationResult result = RunPolicy(policy, Cluster(1, 1), jobs);
  ExpectAccountsBalance(result, jobs);
  return EndsInSeconds(result);
}

TEST(PreemptiveBaselines, AShortJobPreemptsALongOne) {
  const std::vector<TimeMs> preempted = {6 * 3600 + 35, 3 * 3600 + 5};
  EXPECT_EQ(EndsOfTwo("las", 1), preempted);
  EXPECT_EQ(EndsOfTwo("srpt-oracle", 1), preempted);
}

TEST(PreemptiveBaselines, WhatAPreemptionTakesIsCounted) {
  Workload jobs = {MakeJob(0, 1, 1, 5 * 3600), MakeJob(2 * 3600, 1, 1, 3600)};
  for (WorkloadJob& job : jobs) job.checkpoints = true;
  const Metrics metrics = Measure(RunPolicy("las", Cluster(1, 1), jobs));
  EXPECT_DOUBLE_EQ(metrics.largest_share_of_a_job, 35.0 / (5 * 3600 + 35));
}

TEST(PreemptiveBaselines, WhoKnowsThatItIsLongerDoesNot) {
  EXPECT_THAT(EndsOfTwo("srpt-oracle", 4), ElementsAre(5 * 3600, 9 * 3600));
  // After an hour, the first one is first again: each saves and restarts once.
  EXPECT_THAT(EndsOfTwo("las", 4), ElementsAre(6 * 3600 + 40, 9 * 3600 + 70));
}

TEST(Kubernetes, PodsGoToTheLeastAllocatedNode) {
  // Two jobs of one GPU are spread over both nodes, so the third, which needs a whole node, waits.
  const Workload jobs = {MakeJob(0, 1, 1, 100), MakeJob(1, 1, 1, 100), MakeJob(2, 1, 2, 10)};
  EXPECT_THAT(EndsInSeconds(RunPolicy("kubernetes", Cluster(2, 2), jobs)),
              ElementsAre(100, 101, 110));
  EXPECT_THAT(EndsInSeconds(RunPolicy("backfill", Cluster(2, 2), jobs)), ElementsAre(100, 101, 12));
}

TEST(Kubernetes, BacksOff) {
  // Job 2 fails at 0 and is not tried again at 0.5 s, when job 1 ends, but at 1 s.
  Workload jobs = {MakeJob(0, 1, 1, 1), MakeJob(0, 1, 1, 1)};
  jobs[0].work_ms = 500;
  const SimulationResult result = RunPolicy("kubernetes", Cluster(1, 1), jobs);
  EXPECT_EQ(result.jobs[1].first_start, 1000);
}

TEST(Kubernetes, PreemptsThePodOfLowestPriority) {
  // Job 3 preempts job 2, which restarts from scratch afterwards, and not job 1.
  const Workload jobs = {MakeJob(0, 1, 1, 100, 5), MakeJob(0, 1, 1, 50, 1),
                         MakeJob(10, 1, 1, 20, 9)};
  const SimulationResult result = RunPolicy("kubernetes", Cluster(1, 2), jobs);
  EXPECT_EQ(result.jobs[0].preemptions, 0);
  EXPECT_EQ(result.jobs[1].preemptions, 1);
  EXPECT_EQ(result.jobs[1].lost, 10 * kSecond);
  EXPECT_EQ(EndsInSeconds(result), (std::vector<TimeMs>{100, 81, 31}));
  ExpectAccountsBalance(result, jobs);
}

TEST(Deadlocks, AreCountedAndResolved) {
  // Places a worker of each gang in turn, until neither gang can be completed.
  class InTurn : public SimulatedPolicy {
   public:
    PolicyOutput Decide(const PolicyInput& input) override {
      PolicyOutput output;
      int left = 0;
      for (const Resources& free : input.free) left += static_cast<int>(free.gpu());
      std::map<int, int> taken;
      std::map<JobId, int> got;
      for (bool any = true; left > 0 && any;) {
        any = false;
        for (const PendingJob& job : input.pending) {
          const auto held = input.held.find(job.job);
          const int there = held == input.held.end() ? 0 : NumWorkers(held->second);
          if (left == 0 || there + got[job.job] >= job.max_workers) continue;
          for (int node = 0; node < static_cast<int>(input.free.size()); ++node) {
            if (input.free[node].gpu() - taken[node] < 1) continue;
            output.holds.push_back({job.job, node, 1});
            ++taken[node];
            ++got[job.job];
            --left;
            any = true;
            break;
          }
        }
      }
      return output;
    }
  } in_turn;
  const Workload two = {MakeJob(0, 3, 1, 100), MakeJob(0, 3, 1, 100)};
  SimulatorOptions options;
  options.deadlock_timeout_ms = 3600 * kSecond;
  const SimulationResult result = Simulate(Cluster(4, 1), two, in_turn, options);
  EXPECT_EQ(result.totals.deadlocks, 1);
  EXPECT_EQ(EndsInSeconds(result), (std::vector<TimeMs>{3700, 3800}));
  ExpectAccountsBalance(result, two);
}

// One job at a time on one GPU, the youngest first; stops the running job at time `at`.
Policy StopOnce(TimeMs at) {
  return [at](const Snapshot& snapshot) {
    Decisions decisions;
    const Job* youngest = nullptr;
    for (const Job& job : snapshot.jobs) {
      if (job.eligible_at == kNever) continue;
      if (job.state == JobState::kRunning && snapshot.now == at)
        decisions.stops.push_back({job.id, StopReason::kPreempted, 2});
      if (job.state != JobState::kPending) return decisions;
      youngest = &job;
    }
    if (youngest != nullptr) decisions.starts.push_back({youngest->id, {{0, 1}}});
    return decisions;
  };
}

TEST(Stops, CostTheCheckpointAndTheRestart) {
  Workload jobs = {MakeJob(0, 1, 1, 100), MakeJob(40, 1, 1, 10)};
  jobs[0].checkpoints = true;
  jobs[0].checkpoint_cost_ms = 5 * kSecond;
  jobs[0].restart_cost_ms = 7 * kSecond;
  const SimulationResult result =
      Simulate(Cluster(1, 1), jobs, *MakeScheduler(StopOnce(40 * kSecond)));
  // Job 1 stops from 40 to 45, job 2 runs until 55, then job 1 restarts for 7 s and runs for 60 s.
  EXPECT_EQ(EndsInSeconds(result), (std::vector<TimeMs>{122, 55}));
  EXPECT_EQ(result.jobs[0].lost, 0);
  EXPECT_EQ(result.jobs[0].overhead, 12 * kSecond);
  EXPECT_EQ(result.jobs[0].waited_ms, 10 * kSecond);
  ExpectAccountsBalance(result, jobs);
}

TEST(Stops, LoseWorkThatIsNotSavedWithinTheGrace) {
  Workload jobs = {MakeJob(0, 1, 1, 1000), MakeJob(700, 1, 1, 10)};
  jobs[0].checkpoints = true;
  jobs[0].checkpoint_cost_ms = 50 * kSecond;
  jobs[0].grace_ms = 30 * kSecond;
  jobs[0].restart_cost_ms = 0;
  const SimulationResult result =
      Simulate(Cluster(1, 1), jobs, *MakeScheduler(StopOnce(700 * kSecond)));
  // Only its checkpoint at 600 remains: 100 s are repeated after 740.
  EXPECT_EQ(result.jobs[0].lost, 100 * kSecond);
  EXPECT_EQ(EndsInSeconds(result), (std::vector<TimeMs>{1140, 740}));
  ExpectAccountsBalance(result, jobs);
}

TEST(Elastic, RunsAtTheSpeedOfItsWorkers) {
  Workload jobs = {MakeJob(0, 4, 1, 100)};
  jobs[0].min_workers = 1;
  jobs[0].checkpoints = true;
  const SimulationResult result = RunPolicy("backfill", Cluster(3, 1), jobs);
  EXPECT_EQ(result.jobs[0].end, (400 * kSecond + 2) / 3);
  EXPECT_EQ(result.jobs[0].useful, 400 * kSecond);
}

TEST(Interruptions, AllWorkIsDoneInTheEndAndResultsAreRepeatable) {
  Snapshot cluster = Cluster(6, 4);
  cluster.pools[0].interruptions_per_hour = 0.3;
  cluster.pools[0].spot = true;
  const Workload jobs = GenerateFor(cluster, {.jobs = 150, .seed = 5, .median_minutes = 60});
  for (const std::string policy : {"backfill", "kubernetes"}) {
    for (const TimeMs notice : {TimeMs{0}, 120 * kSecond}) {
      const SimulatorOptions options{.seed = 3, .notice_ms = notice};
      const SimulationResult result = RunPolicy(policy, cluster, jobs, options);
      EXPECT_GT(result.totals.nodes_failed, 10);
      EXPECT_THAT(result.never_ended, ElementsAre());
      ExpectAccountsBalance(result, jobs);
      const Metrics metrics = Measure(result);
      EXPECT_GT(metrics.lost_gpu_s, 0);
      EXPECT_EQ(metrics.drains > 0, notice > 0);
      const SimulationResult again =
          Simulate(cluster, jobs, *MakePolicy(policy, 1), {.seed = 3, .notice_ms = notice});
      EXPECT_EQ(WriteJson({{policy, Measure(again)}}), WriteJson({{policy, metrics}})) << policy;
    }
  }
}

// A job that was saving its work to move there waits instead, as in every environment.
TEST(Interruptions, NoJobStartsOnANodeThatIsLeaving) {
  Snapshot cluster = Cluster(6, 4);
  cluster.pools[0].interruptions_per_hour = 2;
  cluster.pools[0].spot = true;
  const Workload jobs = GenerateFor(
      cluster, {.jobs = 100, .elastic_share = 1, .checkpoint_share = 1, .checkpoint_seconds = 30});
  int starts = 0;
  const auto scheduler = MakeScheduler([&](const Snapshot& snapshot) {
    for (const Job& job : snapshot.jobs) {
      if (job.state != JobState::kRunning || job.started != snapshot.now) continue;
      ++starts;
      for (const Placed& placed : job.placement)
        EXPECT_EQ(snapshot.nodes[placed.node].state, NodeState::kReady) << "job " << job.id;
    }
    return Schedule(snapshot, {});
  });
  const SimulationResult result = Simulate(cluster, jobs, *scheduler, {.notice_ms = 600 * kSecond});
  EXPECT_GT(starts, 0) << "only those that have moved: others start after the policy decides";
  EXPECT_THAT(result.never_ended, ElementsAre());
}

TEST(Simulate, RejectsJobsThatNeverFitAndContinues) {
  const Workload jobs = {MakeJob(0, 1, 3, 10), MakeJob(0, 1, 2, 10)};
  const SimulationResult result = RunPolicy("fifo", Cluster(2, 2), jobs);
  EXPECT_EQ(result.rejected.size(), 1u);
  EXPECT_EQ(result.jobs.size(), 1u);
  EXPECT_EQ(result.jobs[0].end, 10 * kSecond);
}

TEST(Simulate, ErrorNamesTheMissingQueue) {
  Workload jobs = {MakeJob(0, 1, 1, 10)};
  jobs[0].queue = "vision";
  const auto policy = MakeFifo();
  try {
    Simulate(Cluster(1, 1), jobs, *policy);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNoInput);
    EXPECT_THAT(error.what(), testing::HasSubstr("queue vision"));
  }
}

TEST(Simulate, ReportsJobsThatNeverEnd) {
  const auto lazy = MakeScheduler([](const Snapshot&) { return Decisions{}; });
  const SimulationResult result =
      Simulate(Cluster(1, 1), {MakeJob(0, 1, 1, 10)}, *lazy, {.check = true});
  EXPECT_THAT(result.never_ended, ElementsAre(1));
  EXPECT_THAT(result.violations, testing::Contains(testing::HasSubstr("job 1 never ended")));
}

TEST(Simulate, ReportsDecisionsThatAreNotRepeatable) {
  int calls = 0;
  const auto fickle = MakeScheduler([&](const Snapshot& snapshot) {
    Decisions decisions;
    if (++calls % 2 == 1)
      for (const Job& job : snapshot.jobs)
        if (job.state == JobState::kPending) decisions.starts.push_back({job.id, {{0, 1}}});
    return decisions;
  });
  const SimulationResult result =
      Simulate(Cluster(1, 1), {MakeJob(0, 1, 1, 10)}, *fickle, {.check = true});
  EXPECT_THAT(result.violations, testing::Contains(testing::HasSubstr("gave different decisions")));
}

}  // namespace
}  // namespace renzan::cluster::simulate
