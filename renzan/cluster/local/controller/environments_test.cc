// The same decisions lead to the same snapshots everywhere: what a simulation did is replayed on a
// daemon, and before each scheduling cycle both must have the same snapshot.

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "renzan/base/philox.h"
#include "renzan/base/random_testing.h"
#include "renzan/cluster/local/controller/controller_for_test.h"
#include "renzan/cluster/simulate/simulator.h"
#include "renzan/cluster/spec/snapshot_json.h"

namespace renzan::cluster::local {
namespace {

using simulate::Workload;
using simulate::WorkloadJob;

struct RecordedCycle {
  Snapshot snapshot;
  Decisions decisions;
};

Workload RandomWorkload(uint64_t seed) {
  Workload jobs;
  uint64_t draws = 0;
  const auto draw = [&](uint32_t below) { return Philox::Draw(seed, draws++, 0)[0] % below; };
  TimeMs submitted = 0;
  for (int count = 0; count < 35; ++count) {
    // The last jobs come when others have ended, so that their run times are predicted.
    submitted += draw(count < 25 ? 3 : 30) * 60'000;
    WorkloadJob job{.submitted = submitted,
                    .user = "ann",
                    .name = draw(2) == 0 ? "a" : "b",
                    .priority = static_cast<int>(draw(3))};
    job.min_workers = job.max_workers = 1 + static_cast<int>(draw(3));
    if (draw(3) == 0) job.max_workers += static_cast<int>(draw(3));
    job.per_worker = {.amount = {1000, 1024, 1 + draw(4)}};
    job.work_ms = 60'000 * (1 + draw(90));
    job.checkpoints = draw(4) != 0;
    job.preemptible = draw(8) != 0;
    job.checkpoint_interval_ms = 1'000'000'000;  // the daemon would have to read it from files
    jobs.push_back(job);
  }
  return jobs;
}

std::string YamlOf(const WorkloadJob& job) {
  return fmt::format(
      "name: {}\ncommand: [x]\npriority: {}\nreplicas: {}..{}\npreemptible: {}\n"
      "checkpoint: {{on_stop: {}, max_interval: 1000000s}}\nresources: {{cpu: 1, memory: 1GiB, "
      "gpu: {}}}",
      job.name, job.priority, job.min_workers, job.max_workers, job.preemptible, job.checkpoints,
      job.per_worker.gpu());
}

// As JSON, without meaningless details: the order of interned requests, back-offs that are over,
// and since when a node that is gone or has workers was idle. A restarted daemon measures idle
// time, and how long a job takes to stop, from then on: not compared if `restarted`.
std::string FactsOf(Snapshot snapshot, bool restarted) {
  for (Node& node : snapshot.nodes)
    if (restarted || node.state == NodeState::kGone) node.idle_since = 0;
  const std::vector<WorkerRequest> requests = std::exchange(snapshot.worker_requests, {});
  for (Job& job : snapshot.jobs) {
    job.request = snapshot.InternRequest(requests[job.request]);
    if (job.eligible_at <= snapshot.now) job.eligible_at = 0;
    if (restarted) job.checkpoint_cost_ms = 0;
  }
  for (const Job& job : snapshot.jobs)
    for (const Placement* placement : {&job.placement, &job.target})
      for (const Placed& placed : *placement) snapshot.nodes[placed.node].idle_since = 0;
  return spec::SnapshotToJson(snapshot);
}

class EnvironmentsTest : public ControllerTest {
 protected:
  void Use(const char* boot) {
    config_ = {};
    spec::ClusterConfig::PoolConfig own, cloud;
    own.nodes = "2";
    cloud.nodes = "0..2";
    for (auto* pool : {&own, &cloud}) {
      pool->resources.cpu = 8;
      pool->resources.gpu = 4;
      pool->resources.memory = "64GiB";
    }
    cloud.boot = boot;
    config_.pools["own"] = own;
    config_.pools["cloud"] = cloud;
    config_.limits.max_priority = 2;  // the jobs ask for as much
    controller_.reset();
    store_.reset();
    std::filesystem::remove(directory_ / "state.db");
    agent_.runs.clear();
    Restart();
  }

  std::vector<RecordedCycle> Record(const Workload& jobs) {
    std::vector<RecordedCycle> cycles;
    const auto policy = simulate::MakeScheduler([&](const Snapshot& snapshot) {
      if (!cycles.empty() && cycles.back().snapshot.now == snapshot.now)
        return cycles.back().decisions;  // --check asks twice
      // Jobs are soon overdue, so that there are reservations.
      const ScheduleOptions options{.overdue_after_ms = 10 * kMinute, .max_reserved_share = 0.5};
      cycles.push_back({snapshot, Schedule(snapshot, options)});
      return cycles.back().decisions;
    });
    const auto result = simulate::Simulate(spec::MakeSnapshot(config_, controller_now()), jobs,
                                           *policy, {.min_between_cycles_ms = 1, .check = true});
    EXPECT_THAT(result.violations, ::testing::IsEmpty());
    for (const simulate::JobRecord& job : result.jobs) ends_[job.id] = job.end.value();
    return cycles;
  }

  Decisions Decide(const Snapshot& snapshot) override {
    if (expected_ == nullptr) return ControllerTest::Decide(snapshot);
    ++decided_;
    EXPECT_EQ(FactsOf(snapshot, restarted_), FactsOf(expected_->snapshot, restarted_));
    return expected_->decisions;
  }

  // Applies what has happened since the last cycle of the simulation.
  void CatchUp(const Snapshot& recorded, const Workload& jobs) {
    clock_.seconds = (static_cast<double>(recorded.now) + 0.5) / 1000;  // so that ms are exact
    for (const Job& job : Snapshot(controller_->snapshot()).jobs) {
      const Job* then = recorded.Find(job.id);
      const bool stops = job.state == JobState::kStopping || job.state == JobState::kResizing;
      if (then == nullptr)
        EndAt(job, EndedBy::kItself, 0, ends_.at(job.id));
      else if (stops && then->state != job.state)
        EndAt(job, EndedBy::kRequest, job.checkpoints ? 75 : 143, controller_now());
    }
    while (submitted_ < jobs.size() && recorded.Find(submitted_ + 1) != nullptr)
      Submit(YamlOf(jobs[submitted_++]));
  }

  void EndAt(const Job& job, EndedBy by, int code, TimeMs ended) {
    agent_.End(DirectoryOf(job.id), by, code, job.started, ended);
    controller_->ProcessEnded(job.id);
  }

  // With `restart_every` = n, the daemon is killed and restarted before every n-th cycle.
  void Replay(const std::vector<RecordedCycle>& cycles, const Workload& jobs, int restart_every) {
    submitted_ = 0;
    restarted_ = false;
    int count = 0;
    for (const RecordedCycle& cycle : cycles) {
      if (restart_every > 0 && ++count % restart_every == 0) {
        Restart();
        restarted_ = true;
      }
      CatchUp(cycle.snapshot, jobs);
      expected_ = &cycle;
      decided_ = 0;
      controller_->Turn();
      expected_ = nullptr;
      ASSERT_EQ(decided_, 1) << "at " << cycle.snapshot.now;
      if (HasFailure()) return;
    }
  }

  std::map<JobId, TimeMs> ends_;  // in the simulation
  const RecordedCycle* expected_ = nullptr;
  int decided_ = 0;
  size_t submitted_ = 0;
  bool restarted_ = false;
};

TEST_F(EnvironmentsTest, ADaemonHasTheSnapshotsOfASimulation) {
  const auto [first, last] = TestSeeds(7);
  size_t stops = 0, resizes = 0, backfills = 0, bought = 0, returned = 0, predicted = 0;
  for (uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE(seed);
    Use(seed % 2 == 0 ? "0s" : "90s");
    const Workload jobs = RandomWorkload(seed);
    const std::vector<RecordedCycle> cycles = Record(jobs);
    for (const RecordedCycle& cycle : cycles) {
      stops += cycle.decisions.stops.size();
      resizes += cycle.decisions.resizes.size();
      for (const Start& start : cycle.decisions.starts) backfills += start.backfill;
      bought += cycle.decisions.scale_out.size();
      returned += cycle.decisions.scale_in.size();
      for (const Job& job : cycle.snapshot.jobs) predicted += job.run_time.back() > 0;
    }
    Replay(cycles, jobs, seed % 3 == 2 ? 3 : 0);
    if (HasFailure()) return;
  }
  EXPECT_GT(stops, 0);
  EXPECT_GT(resizes, 0);
  EXPECT_GT(backfills, 0);
  EXPECT_GT(bought, 0);
  EXPECT_GT(returned, 0);
  EXPECT_GT(predicted, 0);
}

}  // namespace
}  // namespace renzan::cluster::local
