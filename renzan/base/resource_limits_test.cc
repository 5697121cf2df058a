#include "renzan/base/resource_limits.h"

#include <gtest/gtest.h>

namespace renzan {
namespace {

TEST(ResourceLimits, OfThisProcessAreThoseOfTheSystem) {
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  const ResourceLimits own = OwnLimits();
  EXPECT_EQ(own.at("nofile").soft, files.rlim_cur);
  EXPECT_EQ(own.at("nofile").hard, files.rlim_max);
  EXPECT_EQ(NumberedLimits(own).size(), own.size());
}

TEST(ResourceLimits, AreLoweredToTheHardLimits) {
  const ResourceLimits most = {{"core", {.soft = 0, .hard = RLIM_INFINITY}},
                               {"nofile", {.soft = 10, .hard = 4096}},
                               {"nproc", {.soft = 10, .hard = 20}}};
  const ResourceLimits lowered = LowerTo(most, {{"core", {}},
                                                {"nofile", {.soft = 1024, .hard = 65536}},
                                                {"nproc", {}},
                                                {"of_another_system", {}}});
  EXPECT_EQ(lowered, (ResourceLimits{{"core", {}},
                                     {"nofile", {.soft = 1024, .hard = 4096}},
                                     {"nproc", {.soft = 20, .hard = 20}}}));
}

}  // namespace
}  // namespace renzan
