#include "renzan/cluster/spec/worker_classes.h"

#include <gmock/gmock.h>

#include "renzan/base/error.h"

namespace renzan::cluster::spec {
namespace {

using ::testing::HasSubstr;

const WorkerClasses kClasses = {
    {"large", {.cpu = 16, .memory = "128GiB", .gpu = 8}},
    {"small", {.cpu = 4, .memory = "16GiB", .gpu = 1}},
    {"thinker", {.cpu = 32, .memory = "16GiB"}},
    {"linked", {.cpu = 4, .memory = "16GiB", .gpu = 1, .other = {{"rdma", 1}}}},
};

JobSpec::PerWorker Rounded(const JobSpec::PerWorker& wanted) {
  JobSpec spec{.resources = wanted};
  RoundUpToClass(kClasses, "job.yaml", spec);
  return spec.resources;
}

TEST(WorkerClasses, RoundsUpToTheSmallestThatIsLargeEnough) {
  EXPECT_EQ(Rounded({.cpu = 1}).cpu, 32);  // without a GPU
  EXPECT_EQ(Rounded({.cpu = 1, .memory = "2GiB", .gpu = 1}).memory, "16GiB");
  EXPECT_TRUE(Rounded({.cpu = 1, .gpu = 1}).other.empty());
  EXPECT_EQ(Rounded({.cpu = 1, .memory = "17179869184", .gpu = 1}).gpu, 1);  // 16 GiB
  EXPECT_EQ(Rounded({.cpu = 5, .gpu = 1}).gpu, 8);
  EXPECT_EQ(Rounded({.cpu = 1, .memory = "17GiB", .gpu = 1}).cpu, 16);
  EXPECT_EQ(Rounded({.cpu = 1, .other = {{"rdma", 1}}}).other.at("rdma"), 1);
}

TEST(WorkerClasses, AClassStaysAsItIs) {
  for (const auto& [name, worker_class] : kClasses) {
    const JobSpec::PerWorker same = Rounded(worker_class);
    EXPECT_EQ(same.cpu, worker_class.cpu) << name;
    EXPECT_EQ(same.gpu, worker_class.gpu) << name;
    EXPECT_EQ(same.other, worker_class.other) << name;
  }
}

TEST(WorkerClasses, ErrorListsAllClasses) {
  for (const JobSpec::PerWorker& wanted : {JobSpec::PerWorker{.cpu = 33},
                                           {.cpu = 1, .gpu = 9},
                                           {.cpu = 1, .memory = "129GiB"},
                                           {.cpu = 1, .other = {{"rdma", 2}}}}) {
    try {
      Rounded(wanted);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);
      EXPECT_THAT(error.what(), HasSubstr("job.yaml"));
      EXPECT_THAT(error.what(), HasSubstr("small (cpu: 4, memory: 16GiB, gpu: 1)"));
    }
  }
}

TEST(WorkerClasses, WithoutClassesNothingChanges) {
  JobSpec spec{.resources = {.cpu = 33}};
  RoundUpToClass({}, "job.yaml", spec);
  EXPECT_EQ(spec.resources.cpu, 33);
}

}  // namespace
}  // namespace renzan::cluster::spec
