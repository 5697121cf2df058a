#include "renzan/cluster/local/controller/recovered_job.h"

#include <gmock/gmock.h>

#include "renzan/cluster/spec/cluster_config.h"

namespace renzan::cluster::local {
namespace {

using ::testing::HasSubstr;

class RecoveredJobTest : public ::testing::Test {
 protected:
  RecoveredJobTest() {
    config_.pools["own"].resources.gpu = 4;
    snapshot_ = spec::MakeSnapshot(config_, 0);
  }
  static JobRecord Record(const std::string& yaml) {
    JobRecord record;
    record.id = 7;
    record.name = "train";
    record.queue = "default";
    record.spec = yaml;
    record.user = "ann";
    record.priority = 3;
    record.min_workers = 1;
    record.max_workers = 2;
    record.cpu_millis = 500;
    record.memory_mib = 64;
    record.gpus = 2;
    record.submitted = 1000;
    return record;
  }

  spec::ClusterConfig config_;
  Snapshot snapshot_;
};

TEST_F(RecoveredJobTest, ContinuesWhereTheRecordSays) {
  const auto [spec, job] = JobFromRecord(snapshot_, Record("command: [a]\nresources: {gpu: 1}\n"));
  EXPECT_EQ(spec.command.front(), "a");
  EXPECT_EQ(job.id, 7);
  EXPECT_EQ(job.submitted, 1000);
  EXPECT_EQ(job.held, "");
}

TEST_F(RecoveredJobTest, IsHeldWhenTheConfigurationLacksWhatItNeeds) {
  const auto [spec, job] =
      JobFromRecord(snapshot_, Record("command: [a]\nresources: {other: {rdma: 1}}\n"));
  EXPECT_THAT(job.held, HasSubstr("the configuration has changed"));
  EXPECT_THAT(job.held, HasSubstr("rdma"));
}

TEST_F(RecoveredJobTest, IsHeldWhenItsSpecificationCannotBeRead) {
  const auto [spec, job] = JobFromRecord(snapshot_, Record("no_such_key: 1\n"));
  EXPECT_THAT(job.held, HasSubstr("cannot read its specification"));
  EXPECT_EQ(job.priority, 3);
  EXPECT_EQ(job.min_workers, 1);
  EXPECT_EQ(job.max_workers, 2);
  EXPECT_EQ(snapshot_.worker_requests[job.request].per_worker.gpu(), 2);
}

TEST_F(RecoveredJobTest, KeepsAQueueThatTheConfigurationDropped) {
  JobRecord record = Record("command: [a]\nqueue: speech\n");
  record.queue = "speech";
  const auto [spec, job] = JobFromRecord(snapshot_, record);
  EXPECT_EQ(job.held, "the configuration no longer has queue speech");
  EXPECT_EQ(snapshot_.queues[job.queue].name, "speech");
  EXPECT_EQ(snapshot_.queues[job.queue].limit, Queue::Unlimited());
  EXPECT_TRUE(snapshot_.queues[job.queue].removed);
}

}  // namespace
}  // namespace renzan::cluster::local
