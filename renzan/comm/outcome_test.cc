#include "renzan/comm/outcome.h"

#include <gtest/gtest.h>

#include "renzan/comm/testing.h"

namespace renzan {
namespace {

TEST(Outcome, ReachesEveryRank) {
  RunRanksAsThreads(3, [](Communicator& comm) {
    Outcome mine{.error = std::nullopt, .result = std::string("files\0\n", 7)};
    if (comm.rank() == 1) mine = {.error = Error(ErrorCode::kIo, "disk full")};
    if (comm.rank() == 2) mine = {};
    const std::vector<Outcome> all = GatherOutcomes(comm, mine);
    ASSERT_EQ(all.size(), 3u);
    EXPECT_FALSE(all[0].error);
    EXPECT_EQ(all[0].result, std::string("files\0\n", 7));
    ASSERT_TRUE(all[1].error);
    EXPECT_EQ(all[1].error->code(), ErrorCode::kIo);
    EXPECT_STREQ(all[1].error->what(), "disk full");
    EXPECT_FALSE(all[2].error);
    EXPECT_EQ(all[2].result, "");
  });
}

TEST(Outcome, OfRankZeroIsBroadcast) {
  RunRanksAsThreads(2, [](Communicator& comm) {
    const Outcome mine = comm.rank() == 0 ? Outcome{.error = Error(ErrorCode::kData, "")}
                                          : Outcome{.error = std::nullopt, .result = "ignored"};
    const Outcome outcome = BroadcastOutcome(comm, mine);
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->code(), ErrorCode::kData);
  });
}

}  // namespace
}  // namespace renzan
