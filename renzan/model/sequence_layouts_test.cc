// Models in which blocks give the newest positions alone, and those that take a sequence in several
// layouts.

#include <gtest/gtest.h>

#include "renzan/base/random_testing.h"
#include "renzan/base/thread_pool.h"
#include "renzan/model/blocks/concat.h"
#include "renzan/model/blocks/hstu.h"
#include "renzan/model/blocks/layer_norm.h"
#include "renzan/model/blocks/mlp.h"
#include "renzan/model/blocks/pool.h"
#include "renzan/model/blocks/self_attention.h"
#include "renzan/model/blocks/sum.h"
#include "renzan/model/model.h"
#include "renzan/tensor/blocked_matrix_testing.h"

namespace renzan {
namespace {

constexpr int64_t kLayoutPositions = 5, kLayoutDim = 4;
const std::vector<int32_t> kLayoutLengths = {5, 0, 1, 3};

struct LayoutResult {
  std::vector<float> logits, gradients, d_rows;
};

// Logits and all gradients of four samples, with random parameters.
LayoutResult ResultOf(const Graph& graph) {
  const Model model(
      {.type = kBlocksType,
       .sequences = {{.name = "s", .dim = kLayoutDim, .positions = kLayoutPositions}}},
      graph);
  const int64_t n = std::ssize(kLayoutLengths);
  AlignedBuffer parameters(static_cast<size_t>(model.layout().size()));
  model.layout().Initialize(3, parameters.span());
  ThreadPool pool(1);
  PackedParameters packed(model.layout(), parameters.span());
  packed.Pack(pool);
  const auto workspace = model.MakeWorkspace(n);
  const std::vector<float> values =
      RandomValues(static_cast<size_t>(n * kLayoutPositions * kLayoutDim), 5);
  for (int64_t i = 0; i < n; ++i) {
    const int32_t length = kLayoutLengths[static_cast<size_t>(i)];
    workspace->lengths[0][static_cast<size_t>(i)] = length;
    workspace->features[1].SetRow(i, 0, values.data() + i * kLayoutPositions * kLayoutDim,
                                  length * kLayoutDim);
    workspace->d_logits.data()[i] = 1.0f + static_cast<float>(i);
  }
  model.Forward(packed, workspace.get());
  AlignedBuffer gradients(parameters.size());
  FlatGradients flat(gradients.data());
  model.Backward(packed, &flat, workspace.get());
  return {{workspace->logits.data(), workspace->logits.data() + n},
          {gradients.data(), gradients.data() + gradients.size()},
          RowMajor(workspace->d_features[1])};
}

void ExpectClose(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5f) << i;
}

// Two layers, of which the second needs only the newest position if nothing else reads it.
Graph TwoLayers(const BlockOptions& attention) {
  const Mlp each{.layers = {kLayoutDim}, .activation = "tanh", .per_vector = true};
  return {{"first", {EmbeddingsOf("s")}, attention},
          {"normalized", {"first"}, LayerNorm{.per_vector = true}},
          {"second", {"normalized"}, attention},
          {"forward", {"second"}, each},
          {"sum", {"forward", "normalized"}, Sum{}},
          {"newest", {"sum"}, Pool{"last"}}};
}

TEST(SequenceLayouts, TheNewestPositionAloneGivesWhatAllGive) {
  const Mlp logit{.layers = {1}, .linear_output = true};
  for (const BlockOptions& attention :
       {BlockOptions(SelfAttention{.heads = 2, .causal = true}), BlockOptions(SelfAttention{}),
        BlockOptions(Hstu{.heads = 2})}) {
    SCOPED_TRACE(attention.type());
    Graph narrow = TwoLayers(attention), wide = narrow;
    narrow.push_back({"logit", {"newest"}, logit});
    // The same logit; but all positions are read, for a product with 0.
    wide.push_back({"logit_of_newest", {"newest"}, logit});
    wide.push_back({"all", {"sum"}, Pool{"sum"}});
    wide.push_back({"logit_of_all", {"all"}, logit});
    wide.push_back({"logit", {"logit_of_newest", "logit_of_all"}, Sum{}});
    narrow.back().name = "logit_of_newest";
    Graph only_all = TwoLayers(attention);
    only_all.back() = {"all", {"sum"}, Pool{"sum"}};
    only_all.push_back({"logit_of_all", {"all"}, logit});
    const LayoutResult one = ResultOf(narrow), both = ResultOf(wide), other = ResultOf(only_all);
    // Sums of logits, and so of what they give to everything before them.
    std::vector<float> logits = one.logits, d_rows = one.d_rows;
    for (size_t i = 0; i < logits.size(); ++i) logits[i] += other.logits[i];
    for (size_t i = 0; i < d_rows.size(); ++i) d_rows[i] += other.d_rows[i];
    ExpectClose(both.logits, logits);
    ExpectClose(both.d_rows, d_rows);
    for (size_t i = 1; i < 4; i += 2) EXPECT_NE(one.logits[0], one.logits[i]);
  }
}

// The sequence itself in rows, as newest positions and in columns, which a concat wants.
TEST(SequenceLayouts, ASequenceIsReadInSeveralLayouts) {
  const Mlp logit{.layers = {1}, .linear_output = true};
  const LayoutResult result =
      ResultOf({{"norm", {EmbeddingsOf("s")}, LayerNorm{.per_vector = true}},
                {"mean", {"norm"}, Pool{"mean"}},
                {"newest", {EmbeddingsOf("s")}, Pool{"last"}},
                {"flat", {"norm"}, Concat{}},
                {"all", {"mean", "newest", "flat"}, Concat{}},
                {"logit", {"all"}, logit}});
  for (size_t i = 0; i < kLayoutLengths.size(); ++i)
    for (int64_t c = 0; c < kLayoutPositions * kLayoutDim; ++c) {
      const float d = result.d_rows[i * kLayoutPositions * kLayoutDim + static_cast<size_t>(c)];
      if (c / kLayoutDim < kLayoutLengths[i]) {
        EXPECT_NE(d, 0);
      } else {
        EXPECT_EQ(d, 0);
      }
    }
}

// A sequence of one position and column that is a logit: a sample without it has the logit 0.
TEST(SequenceLayouts, ASequenceMayBeTheLogit) {
  const Model model({.type = kBlocksType, .sequences = {{.name = "s", .dim = 1, .positions = 1}}},
                    {{"logit", {EmbeddingsOf("s"), EmbeddingsOf("s")}, Sum{}}});
  AlignedBuffer parameters(static_cast<size_t>(model.layout().size()));
  PackedParameters packed(model.layout(), parameters.span());
  const auto workspace = model.MakeWorkspace(3);
  workspace->lengths[0] = {1, 0, 1};
  workspace->features[1].Set(0, 0, 2);
  workspace->features[1].Set(2, 0, 3);
  model.Forward(packed, workspace.get());
  EXPECT_EQ(std::vector<float>(workspace->logits.data(), workspace->logits.data() + 3),
            (std::vector<float>{4, 0, 6}));
}

}  // namespace
}  // namespace renzan
