#pragma once

// The fixture of tests that describe a cluster, run one scheduling cycle and look at its decisions.
// The validator checks every decision.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/core/validate/invariants.h"

namespace renzan::cluster {

inline constexpr TimeMs kNow = 1000 * kHour;

// GPUs, each with one CPU and 1 GiB.
inline Resources GpusWithCpus(int64_t gpus) {
  return {.amount = {gpus * 1'000, gpus * 1'024, gpus}};
}

struct JobSketch {
  int queue = 0, priority = 0, workers = 1, max_workers = 0;
  int64_t gpus = 1;
  bool checkpoints = true;
  Placement on = {};  // if not empty, the job runs there
  TimeMs ran_ms = kHour / 2;
  int user = 0;
  bool backfilled = false;
  bool preemptible = true;
  WorkerRequest request = {};
};

class ScheduleTest : public testing::Test {
 protected:
  ScheduleTest() {
    snapshot.now = kNow;
    snapshot.users = {{.name = "ann"}, {.name = "bob"}};
    snapshot.queues = {{.name = "default"}};
  }

  void Nodes(int count, int64_t gpus = 8) {
    for (int node = 0; node < count; ++node)
      snapshot.nodes.push_back({.name = "n" + std::to_string(snapshot.nodes.size()),
                                .capacity = {.amount = {64'000, 512 * 1024, gpus}}});
  }

  void TwoQueues(int64_t guaranteed_a, int64_t guaranteed_b) {
    snapshot.queues = {{.name = "a", .guaranteed = {.amount = {0, 0, guaranteed_a}}},
                       {.name = "b", .guaranteed = {.amount = {0, 0, guaranteed_b}}}};
  }

  JobId Add(const JobSketch& sketch) {
    WorkerRequest request = sketch.request;
    request.per_worker = {.amount = {1'000, 1024, sketch.gpus}};
    Job job{.id = static_cast<JobId>(snapshot.jobs.size()) + 1,
            .request = snapshot.InternRequest(request),
            .queue = sketch.queue,
            .user = sketch.user,
            .priority = sketch.priority,
            .min_workers = sketch.workers,
            .max_workers = std::max(sketch.workers, sketch.max_workers),
            .checkpoints = sketch.checkpoints,
            .preemptible = sketch.preemptible,
            .submitted = kNow - 7'200'000 + static_cast<TimeMs>(snapshot.jobs.size())};
    job.waiting_since = job.submitted;
    if (!sketch.on.empty()) {
      job.state = JobState::kRunning;
      job.placement = sketch.on;
      job.started = job.last_resize = kNow - sketch.ran_ms;
      job.backfilled = sketch.backfilled;
    }
    snapshot.jobs.push_back(job);
    return job.id;
  }

  Decisions Run() {
    EXPECT_THAT(ValidateSnapshot(snapshot), testing::IsEmpty());
    Decisions decisions = Schedule(snapshot);
    EXPECT_THAT(ValidateDecisions(snapshot, decisions), testing::IsEmpty());
    return decisions;
  }

  static std::vector<JobId> Started(const Decisions& decisions) {
    std::vector<JobId> jobs;
    for (const Start& start : decisions.starts) jobs.push_back(start.job);
    return jobs;
  }
  static std::vector<JobId> Stopped(const Decisions& decisions) {
    std::vector<JobId> jobs;
    for (const Stop& stop : decisions.stops) jobs.push_back(stop.job);
    return jobs;
  }
  static WaitReason ReasonOf(const Decisions& decisions, JobId job) {
    for (const Wait& wait : decisions.waits)
      if (wait.job == job) return wait.reason;
    ADD_FAILURE() << "job " << job << " does not wait";
    return {};
  }

  Snapshot snapshot;
};

}  // namespace renzan::cluster
