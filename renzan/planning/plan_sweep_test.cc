#include "renzan/planning/plan_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/step/testing.h"

namespace renzan {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

PlanInput Input() {
  PlanInput input;
  input.config = SmallConfig();
  input.config.sharding.default_sharding = "auto";
  input.config.training.batch_size = 65536;
  input.schema = TestSchema();
  input.pooling_factors = TestPoolingFactors();
  return input;
}

TEST(SweepWorkers, DoublesWorkersAndComparesWithTheFirst) {
  std::vector<int> asked;
  const std::vector<SweepPoint> points = SweepWorkers(Input(), 2, 17, [&](int workers) {
    asked.push_back(workers);
    return Topology::OneHost(workers);
  });
  EXPECT_EQ(asked, (std::vector<int>{2, 4, 8, 16}));
  ASSERT_EQ(points.size(), 4);
  EXPECT_EQ(points[0].efficiency, 1);
  for (const SweepPoint& point : points) {
    EXPECT_NEAR(point.samples_per_second * point.step_seconds, 65536, 1e-6 * 65536);
    EXPECT_NEAR(point.efficiency * point.workers * points[0].samples_per_second / 2,
                point.samples_per_second, 1e-6 * point.samples_per_second);
    EXPECT_TRUE(point.fits);
    EXPECT_NE(point.bottleneck, "");
  }
}

// The run has 8 virtual workers; 16 workers need 16, which do not divide 56 samples.
TEST(SweepWorkers, RefusesBatchesThatVirtualWorkersDoNotDivide) {
  PlanInput input = Input();
  input.config.training.batch_size = 8 * 7;
  try {
    SweepWorkers(input, 8, 16, Topology::OneHost);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_THAT(error.what(), HasSubstr("56 samples cannot be divided by the 16 virtual workers"));
  }
}

TEST(DrawSweep, DrawsEveryPoint) {
  const std::string svg = DrawSweep(SweepWorkers(Input(), 1, 8, Topology::OneHost), "a & b");
  EXPECT_THAT(svg, StartsWith("<svg "));
  EXPECT_THAT(svg, HasSubstr("a &amp; b"));
  EXPECT_THAT(svg, HasSubstr(">100 %</text>"));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  size_t circles = 0;
  for (size_t at = 0; (at = svg.find("<circle", at)) != std::string::npos; ++at) ++circles;
  EXPECT_EQ(circles, 4);
  // A single point has no line, but it has a place.
  EXPECT_EQ(DrawSweep(SweepWorkers(Input(), 4, 4, Topology::OneHost), "").find("nan"),
            std::string::npos);
}

}  // namespace
}  // namespace renzan
