#pragma once

// For tests: a controller with a fake machine and clock.

#include <gmock/gmock.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>

#include "renzan/base/file/file.h"
#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/core/validate/invariants.h"
#include "renzan/cluster/local/controller/controller.h"
#include "renzan/cluster/local/controller/fake_agent_for_test.h"
#include "renzan/cluster/spec/cluster_config.h"

namespace renzan::cluster::local {

// Jobs for Submit().
inline constexpr const char* kSmall = "command: [a]\nresources: {gpu: 1}";
inline constexpr const char* kGang = "command: [train]\nreplicas: 2\nresources: {gpu: 2}";
inline constexpr const char* kObeying =  // takes all GPUs of a node, and saves its work
    "command: [train]\nreplicas: 1\nresources: {gpu: 4}\ncheckpoint: {on_stop: true}";

class FakeClock : public Clock {
 public:
  double MonotonicSeconds() const override { return seconds; }
  double UnixSeconds() const override { return (seconds += tick) + set_forward; }
  mutable double seconds = 1'800'000'000;
  double tick = 0;  // how far each reading advances the clock
  double set_forward = 0;
};

// A daemon that can be killed and started again, on a fake machine.
class ControllerTest : public ::testing::Test {
 protected:
  ControllerTest() {
    spec::ClusterConfig::PoolConfig pool;
    pool.nodes = "2";
    pool.resources.cpu = 8;
    pool.resources.gpu = 4;
    config_.pools["own"] = pool;
    config_.users["bob"].max_gpus = 0;
    Restart();
  }

  // Restarts as after a kill -9: only the disk and the machine remain.
  void Restart() {
    controller_.reset();
    store_.reset();
    store_ = std::make_unique<Store>(directory_ / "state.db");
    controller_ = std::make_unique<Controller>(
        ControllerOptions{.state_dir = directory_.path(),
                          .uid = daemon_uid_,
                          .enforced = {.memory = config_.enforce_memory,
                                       .max_disk_mib = config_.disk.max_per_job_mib()},
                          .machine_gpus = machine_gpus_,
                          .schedule = [this](const Snapshot& snapshot) { return Decide(snapshot); },
                          .validate = Validate,
                          .why_infeasible = [](const Snapshot&, const Job& job) -> std::string {
                            if (!job.held.empty()) return job.held;
                            return job.min_workers > 99 ? "it has too many workers" : "";
                          },
                          .limits = config_.limits,
                          .retention = {.keep_ended_ms = keep_ended_ms_, .keep_attempts = 3},
                          .node_health = config_.node_health,
                          .artifacts_timeout_ms = 60'000,
                          .keep_free = keep_free_,
                          .room_of = [this](const std::string&) { return room_; }},
        spec::MakeSnapshot(config_, controller_now()), *store_, agent_, clock_);
    controller_->Recover();
  }

  TimeMs controller_now() const {
    return static_cast<TimeMs>((clock_.seconds + clock_.set_forward) * 1000);
  }

  virtual Decisions Decide(const Snapshot& snapshot) {
    EXPECT_THAT(ValidateSnapshot(snapshot), ::testing::IsEmpty());
    if (!scripted_) return Schedule(snapshot);
    Decisions decisions = std::move(*scripted_);
    scripted_.reset();
    return decisions;
  }

  JobId Submit(const std::string& yaml) { return Submit(yaml, ann_); }
  JobId Submit(const std::string& yaml, const Caller& caller) {
    const spec::JobSpec spec = spec::ReadJobSpec(yaml + "\nworking_directory: /tmp\n", "job.yaml");
    return controller_->Submit({.spec = spec,
                                .source = "job.yaml",
                                .submit_dir = "/tmp",
                                .manifest = "{}",
                                .caller = caller});
  }

  void Settle() {
    for (int turn = 0; turn < 20; ++turn)
      if (controller_->Turn() > controller_now()) return;
    FAIL() << "it does not settle";
  }

  std::string DirectoryOf(JobId job) {
    return controller_->directories().OfAttempt(job, controller_->View(job).record.attempts - 1);
  }
  FakeAgent::Run& RunOf(JobId job) { return agent_.runs[DirectoryOf(job)]; }

  // The job's processes end, and the daemon notices.
  void End(JobId job, EndedBy by, int code) {
    const TimeMs started = store_->Attempts(job).back().started;
    clock_.seconds += 1;
    agent_.End(DirectoryOf(job), by, code, started, controller_now());
    controller_->ProcessEnded(job);
    Settle();
  }

  JobRecord Record(JobId job) { return controller_->View(job).record; }
  RecordState State(JobId job) { return Record(job).state; }

  TemporaryDirectory directory_;
  uid_t daemon_uid_ = 0;
  std::optional<int64_t> machine_gpus_;
  spec::ClusterConfig config_;
  TimeMs keep_ended_ms_ = 0;
  int64_t keep_free_ = 0;
  std::optional<DiskRoom> room_;  // on the disk, if keep_free_ is set
  FakeClock clock_;
  FakeAgent agent_;
  std::optional<Decisions> scripted_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Controller> controller_;
  const Caller ann_{.uid = ::getuid() == 0 ? 1000 : ::getuid(), .gid = ::getgid(), .name = "ann"};
  const Caller bob_{.uid = 77777, .name = "bob"};
  const Caller operator_{.uid = 0, .name = "operator"};
};

}  // namespace renzan::cluster::local
