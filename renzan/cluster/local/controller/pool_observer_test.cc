#include "renzan/cluster/local/controller/pool_observer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/cluster/local/controller/controller_for_test.h"

namespace renzan::cluster::local {
namespace {

class PoolObserverTest : public ControllerTest {
 protected:
  PoolObserverTest() {
    config_ = {};
    spec::ClusterConfig::PoolConfig pool;
    pool.nodes = "0..2";
    pool.boot = "0s";
    pool.resources.cpu = 8;
    pool.resources.gpu = 4;
    pool.boot_ahead = 1;
    config_.pools["cloud"] = pool;
    Restart();
  }

  std::vector<int> Expected() { return controller_->snapshot().pools[0].expected_nodes; }

  void RunAJob(double seconds) {
    const JobId id = Submit("command: [x]\nresources: {gpu: 4}\n");
    Settle();
    const TimeMs started = controller_now();
    clock_.seconds += seconds;
    agent_.End(DirectoryOf(id), EndedBy::kItself, 0, started, controller_now());
    controller_->ProcessEnded(id);
    Settle();
  }
};

TEST_F(PoolObserverTest, ExpectsWhatWasInUseInThePastWeeksAlsoAfterARestart) {
  constexpr double kWeek = 7 * 24 * 3600;
  const double monday = clock_.seconds;
  const auto hour = static_cast<size_t>(controller_now() / kHour % NodeDemand::kHoursOfWeek);
  for (int week = 0; week < 3; ++week) {
    clock_.seconds = monday + week * kWeek;
    RunAJob(1.5 * 3600);
    if (week == 1) Restart();
  }
  clock_.seconds = monday + 3 * kWeek;
  Settle();
  const std::vector<int> expected = Expected();
  ASSERT_EQ(expected.size(), static_cast<size_t>(NodeDemand::kHoursOfWeek));
  EXPECT_EQ(expected[hour], 1);
  EXPECT_EQ(expected[hour + 1], 1);
  EXPECT_EQ(expected[hour + 3], 0);
  EXPECT_EQ(
      std::count_if(controller_->snapshot().nodes.begin(), controller_->snapshot().nodes.end(),
                    [](const Node& node) { return node.state == NodeState::kReady; }),
      1)
      << "it is there before a job";
  Restart();
  Settle();
  EXPECT_EQ(Expected(), expected);
}

}  // namespace
}  // namespace renzan::cluster::local
