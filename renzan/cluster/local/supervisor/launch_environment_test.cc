#include "renzan/cluster/local/supervisor/launch_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace renzan::cluster::local {
namespace {

using testing::Contains;
using testing::Not;
using testing::StartsWith;

AttemptPlan PlanOfThreeWorkers() {
  AttemptPlan plan;
  plan.job = 12;
  plan.attempt = 3;
  plan.run_dir = "/jobs/12/run";
  plan.checkpoint_dir = "/jobs/12/checkpoints";
  plan.grace_seconds = 2.5;
  plan.workers = {{.node = "n0", .local_rank = 0, .devices = {0, 1}},
                  {.node = "n1", .local_rank = 0, .devices = {}},
                  {.node = "n0", .local_rank = 1, .devices = {3}, .cpu_millis = 2500}};
  return plan;
}

const JobUser kUser = {{.uid = 1000, .gid = 1000}, "ann", "/home/ann", "/bin/zsh"};

std::vector<std::string> Of(const AttemptPlan& plan, int rank) {
  return WorkerEnvironment(plan, rank, "/jobs/12/attempt-3", 4321, kUser,
                           {{"PATH", "/my/bin:/bin"}, {"MODE", "slow"}, {"RANK", "5"}});
}

TEST(WorkerEnvironment, HasTheLaunchContractAndALogin) {
  EXPECT_THAT(Of(PlanOfThreeWorkers(), 2),
              testing::ElementsAre("CUDA_VISIBLE_DEVICES=3", "HOME=/home/ann", "LANG=C.UTF-8",
                                   "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "LOGNAME=ann",
                                   "MASTER_ADDR=127.0.0.1", "MASTER_PORT=4321", "MODE=slow",
                                   "PATH=/my/bin:/bin", "RANK=2", "RENZAN_ATTEMPT=3",
                                   "RENZAN_ATTEMPT_DIR=/jobs/12/attempt-3",
                                   "RENZAN_CHECKPOINT_DIR=/jobs/12/checkpoints", "RENZAN_CPUS=2.5",
                                   "RENZAN_GRACE_SECONDS=2.5", "RENZAN_JOB_ID=12", "RENZAN_NODE=n0",
                                   "RENZAN_RUN_DIR=/jobs/12/run", "RENZAN_WORKER=2",
                                   "SHELL=/bin/zsh", "USER=ann", "WORLD_SIZE=3"));
}

TEST(WorkerEnvironment, HasTheDevicesOfTheWorker) {
  EXPECT_THAT(Of(PlanOfThreeWorkers(), 0), Contains("CUDA_VISIBLE_DEVICES=0,1"));
  EXPECT_THAT(Of(PlanOfThreeWorkers(), 1), Contains("CUDA_VISIBLE_DEVICES="));
  EXPECT_THAT(Of(PlanOfThreeWorkers(), 1), Contains("LOCAL_WORLD_SIZE=1"));
}

TEST(WorkerEnvironment, WhoSeesOnlyItsOwnDevicesCountsThemFrom0) {
  AttemptPlan plan = PlanOfThreeWorkers();
  plan.workers[0].devices = {6, 2};
  plan = WithOwnDevicesOnly(plan);
  EXPECT_THAT(Of(plan, 0), Contains("CUDA_VISIBLE_DEVICES=2,0"));
  EXPECT_THAT(Of(plan, 1), Contains("CUDA_VISIBLE_DEVICES="));
  EXPECT_THAT(Of(plan, 2), Contains("CUDA_VISIBLE_DEVICES=1"));
}

TEST(WorkerEnvironment, AJobCanChangeTheLoginButNotTheContract) {
  AttemptPlan plan = PlanOfThreeWorkers();
  plan.environment = {{"LANG", "de_DE"}, {"MODE", "fast"}, {"RANK", "7"}};
  const std::vector<std::string> environment = Of(plan, 1);
  EXPECT_THAT(environment, Contains("LANG=de_DE"));
  EXPECT_THAT(environment, Contains("MODE=fast"));
  EXPECT_THAT(environment, Contains("RANK=1"));
  EXPECT_THAT(environment, Not(Contains("RANK=7")));
}

TEST(WorkerEnvironment, WithoutASubmitterItIsThatOfALogin) {
  const AttemptPlan plan = PlanOfThreeWorkers();
  EXPECT_THAT(
      WorkerEnvironment(plan, 0, "/jobs/12/attempt-3", 4321, kUser, {}),
      testing::IsSupersetOf(
          {std::string("LANG=C.UTF-8"),
           std::string("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")}));
}

TEST(WorkerEnvironment, AGangOfOneCanStartItsOwnWorkers) {
  AttemptPlan plan = PlanOfThreeWorkers();
  plan.workers.resize(1);
  const auto Of = [](const AttemptPlan& plan, int rank) {
    return WorkerEnvironment(plan, rank, "/jobs/12/attempt-3", 4321, kUser, {});
  };
  for (const char* name : {"RANK=", "WORLD_SIZE=", "LOCAL_", "MASTER_"})
    EXPECT_THAT(Of(plan, 0), Not(Contains(StartsWith(name))));
  plan.environment = {{"RANK", "0"}, {"WORLD_SIZE", "1"}};
  EXPECT_THAT(Of(plan, 0), testing::IsSupersetOf({"RANK=0", "WORLD_SIZE=1"}));
}

}  // namespace
}  // namespace renzan::cluster::local
