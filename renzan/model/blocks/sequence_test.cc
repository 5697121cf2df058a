// What holds for every block that gives a sequence.

#include "renzan/model/blocks/sequence.h"

#include <gtest/gtest.h>

#include "renzan/model/blocks/activation.h"
#include "renzan/model/blocks/append.h"
#include "renzan/model/blocks/batch_norm.h"
#include "renzan/model/blocks/block_testing.h"
#include "renzan/model/blocks/concat.h"
#include "renzan/model/blocks/first_order.h"
#include "renzan/model/blocks/hstu.h"
#include "renzan/model/blocks/l2_normalize.h"
#include "renzan/model/blocks/layer_norm.h"
#include "renzan/model/blocks/mlp.h"
#include "renzan/model/blocks/multiply.h"
#include "renzan/model/blocks/pool.h"
#include "renzan/model/blocks/positions.h"
#include "renzan/model/blocks/project.h"
#include "renzan/model/blocks/self_attention.h"
#include "renzan/model/blocks/sum.h"
#include "renzan/model/model.h"

namespace renzan {
namespace {

constexpr int64_t kVectorWidth = 4;
constexpr size_t kMost = 5;  // positions
const std::vector<int32_t> kUsed = {5, 0, 1, 3};

struct SequenceCase {
  const char* name;
  BlockOptions options;
  size_t inputs = 1;
  int32_t appended = 0;
};
void PrintTo(const SequenceCase& its, std::ostream* out) { *out << its.name; }

Shape Five() {
  Shape shape;
  for (size_t v = 0; v < kMost; ++v) shape.push_back({fmt::format("s.{}", v), kVectorWidth});
  return shape;
}

class SequenceBlocks : public testing::TestWithParam<SequenceCase> {
 protected:
  BlockAlone Make(Precision precision = Precision::kFloat32) const {
    std::vector<Shape> inputs(GetParam().inputs, Five());
    if (GetParam().appended > 0) inputs.push_back({{"x", kVectorWidth}});
    return BlockAlone(GetParam().options, inputs, 4, std::nullopt, precision);
  }
};

TEST_P(SequenceBlocks, GiveZerosWhereASampleEnds) {
  BlockAlone block = Make();
  block.SetLengths(kUsed);
  ASSERT_TRUE(block.block().sequence());
  EXPECT_EQ(*block.block().sequence(), (SequenceId{0, GetParam().appended}));
  const std::vector<float> y = block.Output();
  const size_t columns = static_cast<size_t>(block.columns());
  const size_t width = columns / (kMost + static_cast<size_t>(GetParam().appended));
  for (size_t i = 0; i < kUsed.size(); ++i) {
    const size_t used = static_cast<size_t>(kUsed[i] + GetParam().appended) * width;
    for (size_t c = used; c < columns; ++c) EXPECT_EQ(y[i * columns + c], 0) << i;
    for (size_t c = 0; c < used; ++c) EXPECT_NE(y[i * columns + c], 0) << i;
  }
}

// Whatever the unused ones hold and whatever their outputs' gradients are.
TEST_P(SequenceBlocks, SeeNoPositionThatASampleDoesNotUse) {
  BlockAlone block = Make();
  block.SetLengths(kUsed);
  const std::vector<float> y = block.Output();
  const auto gradients = block.Gradients();
  for (size_t input = 0; input < GetParam().inputs; ++input)
    for (size_t i = 0; i < kUsed.size(); ++i)
      for (size_t c = static_cast<size_t>(kUsed[i] * kVectorWidth); c < kMost * kVectorWidth; ++c) {
        EXPECT_EQ(gradients.second[input][i * kMost * kVectorWidth + c], 0) << i;
        block.inputs[input][i * kMost * kVectorWidth + c] = 3;
      }
  EXPECT_EQ(block.Output(), y);
}

TEST_P(SequenceBlocks, GradientsAgreeWithFiniteDifferences) {
  BlockAlone block = Make();
  block.SetLengths(kUsed);
  block.ExpectGradients();
}

// What reads only the newest position sees the same, and gives the same gradients.
TEST_P(SequenceBlocks, GiveTheNewestPositionAlone) {
  BlockAlone all = Make(), newest = Make();
  if (all.block().NewestNeeds() == Block::Needs::kUnable) return;
  newest.GiveOnlyNewest();
  for (BlockAlone* each : {&all, &newest}) each->SetLengths(kUsed);
  const std::vector<float> expected = all.Output(), y = newest.Output();
  const size_t columns = static_cast<size_t>(all.columns()), width = columns / kMost;
  for (size_t i = 0; i < kUsed.size(); ++i)
    for (size_t c = 0; c < columns; ++c) {
      const bool is_newest = static_cast<int32_t>(c / width) == kUsed[i] - 1;
      EXPECT_NEAR(y[i * columns + c], is_newest ? expected[i * columns + c] : 0, 1e-5f) << i;
    }
  newest.ExpectGradients();
}

// Those of the positions that are computed.
TEST_P(SequenceBlocks, CountTheOperationsOfTheNewestPositionAlone) {
  BlockAlone all = Make(), newest = Make();
  const double flops = all.block().Flops(true);
  const Block::Needs needs = all.block().NewestNeeds();
  if (flops == 0 || needs == Block::Needs::kUnable) return;
  newest.GiveOnlyNewest();
  if (needs == Block::Needs::kNewest) {
    EXPECT_DOUBLE_EQ(newest.block().Flops(true), flops / kMost);
  } else {
    EXPECT_LT(newest.block().Flops(true), flops);
    EXPECT_GT(newest.block().Flops(true), flops / kMost);
  }
}

TEST_P(SequenceBlocks, WorkInBFloat16) {
  const SequenceCase& its = GetParam();
  std::vector<Shape> inputs(its.inputs, Five());
  if (its.appended > 0) inputs.push_back({{"x", kVectorWidth}});
  ExpectBFloat16(its.options, inputs, kUsed);
}

INSTANTIATE_TEST_SUITE_P(
    All, SequenceBlocks,
    testing::Values(
        SequenceCase{"activation", ActivationFunction{"silu"}},
        SequenceCase{"append", Append{}, 1, 1}, SequenceCase{"hstu", Hstu{.heads = 2, .dim = 3}},
        SequenceCase{"hstu_without_positions", Hstu{.heads = 1, .positions = "none"}},
        SequenceCase{"l2_normalize", L2Normalize{.per_vector = true}},
        SequenceCase{"layer_norm", LayerNorm{.per_vector = true}},
        SequenceCase{"mlp", Mlp{.layers = {7, 3}, .activation = "tanh", .per_vector = true}},
        SequenceCase{"mlp_with_layer_norm", Mlp{.layers = {6, 5},
                                                .activation = "silu",
                                                .linear_output = true,
                                                .normalization = "layer",
                                                .per_vector = true}},
        SequenceCase{"factors", Factors{}}, SequenceCase{"project", Project{7}},
        SequenceCase{"project_to_its_own", Project{4}}, SequenceCase{"multiply", Product{}, 2},
        SequenceCase{"positions", Positions{}},
        SequenceCase{"self_attention", SelfAttention{.heads = 2, .relu = false}},
        SequenceCase{"causal", SelfAttention{.heads = 2, .dim = 3, .causal = true, .relu = false}},
        SequenceCase{"sum", Sum{}, 3}),
    [](const auto& info) { return info.param.name; });

// Blocks between a sequence and one that must know its positions.
std::string RefusalBetween(const BlockOptions& block, int64_t positions = 5) {
  const ModelOptions options = {
      .type = kBlocksType,
      .sequences = {{.name = "s", .dim = kVectorWidth, .positions = positions}}};
  try {
    Model(options, {{"between", {EmbeddingsOf("s")}, block},
                    {"pooled", {"between"}, Pool{}},
                    {"logit", {"pooled"}, Mlp{.layers = {1}, .linear_output = true}}});
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Sequences, AreStillKnownBehindBlocksThatTakeEachPositionByItself) {
  for (const BlockOptions& block :
       {BlockOptions(LayerNorm{.per_vector = true}), BlockOptions(SelfAttention{}),
        BlockOptions(Mlp{.layers = {3}, .per_vector = true}), BlockOptions(Positions{}),
        BlockOptions(Project{3}), BlockOptions(Project{kVectorWidth}), BlockOptions(Factors{}),
        BlockOptions(ActivationFunction{})})
    for (const int64_t positions : {1, 5})
      EXPECT_EQ(RefusalBetween(block, positions), "") << block.type();
  for (const BlockOptions& block :
       {BlockOptions(LayerNorm{}), BlockOptions(Concat{}), BlockOptions(BatchNorm{}),
        BlockOptions(ActivationFunction{"prelu"}), BlockOptions(L2Normalize{})})
    for (const int64_t positions : {1, 5})
      EXPECT_NE(RefusalBetween(block, positions).find("would take unused positions"),
                std::string::npos)
          << block.type() << " of " << positions;
}

TEST(Sequences, AreOneVectorBehindBlocksThatTakeAllPositions) {
  for (const BlockOptions& block :
       {BlockOptions(Pool{}), BlockOptions(Sum{}), BlockOptions(Mlp{.layers = {3}})})
    EXPECT_EQ(RefusalBetween(block, 1), "") << block.type();
}

TEST(Sequences, RefuseStatisticsOfUnusedPositions) {
  for (const Mlp& mlp : {Mlp{.layers = {3}, .normalization = "batch", .per_vector = true},
                         Mlp{.layers = {3}, .activation = "dice", .per_vector = true}})
    EXPECT_NE(RefusalBetween(mlp).find("use normalization: layer"), std::string::npos);
}

}  // namespace
}  // namespace renzan
