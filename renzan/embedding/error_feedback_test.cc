#include "renzan/embedding/error_feedback.h"

#include <gtest/gtest.h>

#include "renzan/embedding/wire_error.h"

namespace renzan {
namespace {

TEST(ErrorFeedbackSlots, AreNotMoreThanAOneHotTableNeeds) {
  const TableSpec small{.name = "s", .num_embeddings = 5};
  TableSpec bags = small;
  bags.multi_hot = true;
  EXPECT_EQ(ErrorFeedbackSlots(small, 1024), 8);
  EXPECT_EQ(ErrorFeedbackSlots(small, 4), 4);
  EXPECT_EQ(ErrorFeedbackSlots(bags, 1024), 1024);
  EXPECT_EQ(ErrorFeedbackSlots(small, 0), 0);
  EXPECT_EQ(ErrorFeedbackSlots(bags, 0), 0);
}

// Two virtual workers of four samples, on one worker; a one-hot table and one of bags.
class ErrorFeedbackTest : public ::testing::Test {
 protected:
  using Claims = std::vector<ErrorFeedback::Claim>;

  std::vector<bool> Held(const IdsView& ids, size_t table, int virtual_worker) {
    feedback_.ClaimSlots(ids, table, virtual_worker, &claims_);
    std::vector<bool> held;
    for (const ErrorFeedback::Claim& claim : claims_) held.push_back(claim.holds);
    return held;
  }

  const ShardMap map_{
      {{.name = "one", .num_embeddings = 100, .embedding_dim = 3},
       {.name = "bags", .num_embeddings = 100, .embedding_dim = 3, .multi_hot = true}},
      {.shards = {{0, {0, 1}, 0, 0}, {1, {0, 1}, 0, 0}}},
      1,
      0,
      2,
      8};
  ErrorFeedback feedback_{map_, 8};
  Claims claims_;
};

TEST_F(ErrorFeedbackTest, ASlotHoldsWhatItsLastBagLeft) {
  const std::vector<int64_t> ids = {1, 2, 9, 1, 5, 5, 5, 13};
  const IdsView view{ids, {}};
  // 9 takes the slot of 1, which is then new again; nothing was there at first.
  EXPECT_EQ(Held(view, 0, 0), (std::vector<bool>{false, false, false, false}));
  EXPECT_EQ(claims_[0].residual, claims_[2].residual);
  EXPECT_EQ(claims_[1].residual - claims_[0].residual, 3);
  EXPECT_EQ(Held(view, 0, 0), (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ(Held(view, 0, 1), (std::vector<bool>{false, true, true, false}));
}

TEST_F(ErrorFeedbackTest, BagsOfTheSameIdsAreOne) {
  const std::vector<int64_t> ids = {3, 4, 4, 3, 3, 4, /**/ 70, 70, 70, 70};
  const std::vector<int32_t> offsets = {0, 2, 4, 4, 6, 7, 8, 9, 10};
  const IdsView view{ids, offsets};
  Held(view, 1, 0);
  EXPECT_EQ(claims_[0].residual, claims_[3].residual);
  EXPECT_NE(claims_[0].residual, claims_[1].residual);  // in another order
  EXPECT_TRUE(claims_[3].holds);
  EXPECT_EQ(Held(view, 1, 1), (std::vector<bool>{false, true, true, true}));
}

TEST(WireErrorMeter, ComparesWithTheVariance) {
  WireErrorMeter meter(2);
  EXPECT_EQ(meter.Result().noise, 0);
  meter.AddGradient(std::vector<float>{1, 10});
  meter.AddGradient(std::vector<float>{3, 10});
  meter.AddLost(std::vector<float>{0.5f, -2});
  EXPECT_EQ(meter.Result().noise, 2);  // (1 - 2)² + (3 - 2)²
  EXPECT_EQ(meter.Result().lost, 4.25);
}

}  // namespace
}  // namespace renzan
