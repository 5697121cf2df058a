#include "renzan/model/match_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/error.h"
#include "renzan/base/random_testing.h"
#include "renzan/model/blocks/concat.h"
#include "renzan/model/blocks/match.h"
#include "renzan/model/blocks/mlp.h"
#include "renzan/model/blocks/pool.h"
#include "renzan/model/model.h"

namespace renzan {
namespace {

// A user's tower over dense features, the user and a history, and an item's over two features.
ModelOptions TwoTowers() {
  return {.type = kBlocksType,
          .blocks =
              SortedGraph({{"history", {EmbeddingsOf("clicked")}, Pool{}},
                           {"user_input", {EmbeddingsOf("user"), "history", kDenseInput}, Concat{}},
                           {"user", {"user_input"}, Mlp{.layers = {5}, .linear_output = true}},
                           {"item_input", {EmbeddingsOf("item"), EmbeddingsOf("genre")}, Concat{}},
                           {"item", {"item_input"}, Mlp{.layers = {5}, .linear_output = true}},
                           {"match", {"user", "item"}, Match{0.5}}}),
          .num_dense = 2,
          .tables = {{"user", 4}, {"item", 4}, {"genre", 3}},
          .sequences = {{"clicked", 4, 3}}};
}

TEST(MatchOutput, NamesWhatItsSidesReadAndTheirVectors) {
  const auto model = MakeModel(TwoTowers());
  const std::optional<MatchOutput> match = model->MatchOf(0);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->block, "match");
  EXPECT_EQ(match->width, 5);
  EXPECT_TRUE(match->query.dense);
  EXPECT_FALSE(match->item.dense);
  EXPECT_THAT(match->query.features, testing::ElementsAre("user", "clicked"));
  EXPECT_THAT(match->item.features, testing::ElementsAre("item", "genre"));
  CheckItemsStandAlone(*match);

  const int64_t n = 3;
  AlignedBuffer parameters(static_cast<size_t>(model->layout().size()));
  model->layout().Initialize(3, parameters.span());
  PackedParameters packed(model->layout(), parameters.span());
  ThreadPool pool(1);
  packed.Pack(pool);
  const auto workspace = model->MakeWorkspace(n);
  const std::vector<float> values = RandomValues(static_cast<size_t>(n * (2 + 11 + 12)), 6);
  for (int64_t i = 0; i < n; ++i) {
    workspace->dense.SetRow(i, 0, values.data() + i * 25, 2);
    workspace->features[0].SetRow(i, model->first_pooled(), values.data() + i * 25 + 2, 11);
    workspace->features[1].SetRow(i, 0, values.data() + i * 25 + 13, 12);
    workspace->lengths[0][static_cast<size_t>(i)] = 3;
  }
  model->Forward(packed, workspace.get());
  std::vector<float> queries(3 * 5), items(3 * 5), last(2 * 5);
  model->GetMatch(*workspace, n, {0, 5, queries.data(), items.data()});
  for (size_t i = 0; i < 3; ++i) {
    double logit = 0;
    for (size_t c = i * 5; c < (i + 1) * 5; ++c) logit += double{queries[c]} * double{items[c]};
    EXPECT_NEAR(double{workspace->logits.data()[i]}, logit / 0.5, 1e-5);
    EXPECT_NE(logit, 0);
  }
  // Only some samples of one side.
  model->GetMatch(*workspace, 2, MatchVectors{0, 5, nullptr, last.data() - 5}.From(1));
  EXPECT_EQ(last, std::vector<float>(items.begin(), items.begin() + 10));
}

TEST(MatchOutput, IsNoneOfOtherBlocks) {
  ModelOptions options = TwoTowers();
  options.blocks.push_back({"logit", {"match"}, Mlp{.layers = {1}, .linear_output = true}});
  EXPECT_FALSE(MakeModel(options)->MatchOf(0));
}

void ExpectShared(const ModelOptions& options, const std::string& what) {
  try {
    CheckItemsStandAlone(*MakeModel(options)->MatchOf(0));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_THAT(error.what(), testing::HasSubstr("block match: its query and its item both depend "
                                                 "on " +
                                                 what));
  }
}

TEST(MatchOutput, RefusesItemsThatDependOnTheQuery) {
  for (const auto& [input, what] : {std::pair{EmbeddingsOf("user"), "the feature 'user'"},
                                    std::pair{EmbeddingsOf("clicked"), "the feature 'clicked'"},
                                    std::pair{std::string(kEmbeddingsInput), "the feature 'user'"},
                                    std::pair{std::string(kDenseInput), "the dense features"},
                                    std::pair{std::string("history"), "the feature 'clicked'"}}) {
    ModelOptions options = TwoTowers();
    for (GraphBlock& block : options.blocks)
      if (block.name == "item_input") block.inputs.push_back(input);
    options.blocks = SortedGraph(options.blocks);
    ExpectShared(options, what);
  }
}

}  // namespace
}  // namespace renzan
