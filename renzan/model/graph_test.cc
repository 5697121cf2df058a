#include "renzan/model/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/error.h"
#include "renzan/model/blocks/activation.h"
#include "renzan/model/blocks/append.h"
#include "renzan/model/blocks/concat.h"
#include "renzan/model/blocks/hstu.h"
#include "renzan/model/blocks/l2_normalize.h"
#include "renzan/model/blocks/mlp.h"
#include "renzan/model/blocks/pool.h"
#include "renzan/model/blocks/project.h"
#include "renzan/model/blocks/sampled_softmax.h"
#include "renzan/model/blocks/self_attention.h"
#include "renzan/model/blocks/sum.h"
#include "renzan/model/model.h"

namespace renzan {
namespace {

using ::testing::HasSubstr;

Mlp Logit() { return {.layers = {1}, .linear_output = true}; }

std::string WhyRefused(const std::vector<GraphBlock>& blocks) {
  try {
    const ModelOptions options{.type = kBlocksType,
                               .blocks = SortedGraph(blocks),
                               .num_dense = 3,
                               .tables = {{"t", 4}},
                               .sequences = {{.name = "s", .dim = 4, .positions = 3}},
                               .precision = Precision::kBFloat16};
    MakeModel(options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    return error.what();
  }
  return "";
}

TEST(Graph, IsSortedByInputsAndNames) {
  const Graph graph = SortedGraph({{"z", {"b", "a"}, Sum{}},
                                   {"b", {"dense"}, Logit()},
                                   {"a", {"c"}, Logit()},
                                   {"c", {"embeddings"}, Mlp{.layers = {3}}}});
  std::vector<std::string> names;
  for (const GraphBlock& block : graph) names.push_back(block.name);
  EXPECT_EQ(names, (std::vector<std::string>{"b", "c", "a", "z"}));
  EXPECT_EQ(WhyRefused(graph), "");
}

// A logit is float32 only where nothing else takes it.
TEST(Graph, TakesLogitsAnywhere) {
  EXPECT_EQ(WhyRefused({{"a", {"dense"}, Logit()},
                        {"b", {"a"}, Mlp{.layers = {3}}},
                        {"both", {"a", "b"}, Concat{}},
                        {"c", {"both"}, Logit()},
                        {"logit", {"a", "c"}, Sum{}}}),
            "");
}

TEST(Graph, SaysWhyItIsNone) {
  EXPECT_EQ(WhyRefused({{"a", {"desne"}, Logit()}}),
            "block a: its input 'desne' does not exist: did you mean 'dense'?");
  EXPECT_EQ(WhyRefused({{"a", {"dense", "c"}, Sum{}},
                        {"b", {"a"}, Sum{}},
                        {"c", {"dense", "b"}, Sum{}},
                        {"logit", {"c"}, Logit()}}),
            "blocks form a cycle: a → b → c → a");
  EXPECT_EQ(WhyRefused({{"a", {"a"}, Sum{}}}), "blocks form a cycle: a → a");
  EXPECT_THAT(WhyRefused({{"a", {"dense"}, Logit()}, {"b", {"embeddings"}, Logit()}}),
              HasSubstr("but a, b are"));
  EXPECT_THAT(WhyRefused({{"dense", {"embeddings"}, Logit()}}),
              HasSubstr("has the name of an input"));
  EXPECT_EQ(WhyRefused({{"a", {"dense"}, Mlp{.layers = {2}}}}),
            "block a comes last, so it must give one logit, but it gives 1 vector of 2");
  EXPECT_THAT(WhyRefused({{"a", {"dense"}, Mlp{.layers = {1}}}}),
              HasSubstr("block a comes last, so it must give a logit: end with an mlp"));
  EXPECT_EQ(WhyRefused({{"a", {"dense", "embeddings"}, Logit()}}),
            "block a takes one input, but has 2 inputs: put a concat before it");
  EXPECT_EQ(WhyRefused({{"a", {"embeddings.s", "embeddings.t"}, SelfAttention{}}}),
            "block a takes one input, but has 2 inputs: put an append before it, which adds a "
            "vector to a sequence");
  EXPECT_EQ(WhyRefused({{"longer", {"embeddings.s", "embeddings.t"}, Append{}},
                        {"a", {"longer"}, SelfAttention{}},
                        {"logit", {"a"}, Logit()}}),
            "");
  EXPECT_EQ(WhyRefused({{"a", {"embeddings.s", "embeddings.t"}, Logit()}}),
            "block a takes one input, but has 2 inputs: put a concat before it");
  EXPECT_EQ(WhyRefused({{"a", {"embeddings.s", "embeddings.s"}, Hstu{}}}),
            "block a takes one input, but has 2 inputs");
  for (const char* name : {"a.0", "../a", "", "a b", "embedding"})
    EXPECT_NE(WhyRefused({{name, {"dense"}, Logit()}}), "") << name;
  EXPECT_THAT(WhyRefused({{"twice", {"embeddings", "embeddings"}, Concat{}},
                          {"p", {"twice"}, Project{2}},
                          {"logit", {"p"}, Logit()}}),
              HasSubstr("p.t.weight would be two parameters"));
  EXPECT_EQ(WhyRefused({{"c", {}, Concat{}}, {"logit", {"c"}, Logit()}}),
            "block c takes at least one input");
  EXPECT_EQ(WhyRefused({{"a", {"dense", "embeddings"}, Sum{}}, {"b", {"a"}, Logit()}}),
            "block a takes inputs of one width, but has 1 vector of 3 and 1 vector of 4");
}

// Only a sequence, or what takes each of its positions by itself, says which of them are used.
TEST(Graph, RefusesWhatWouldTakeUnusedPositionsForUsedOnes) {
  const auto refusal = [](const std::string& input) {
    return WhyRefused({{"changed", {"embeddings.s"}, ActivationFunction{"prelu"}},
                       {"twice", {"changed", "embeddings.t"}, Concat{}},
                       {"pool", {input}, Pool{"last"}},
                       {"rest", {"twice", "pool"}, Concat{}},
                       {"logit", {"rest"}, Logit()}});
  };
  EXPECT_EQ(refusal("embeddings.s"), "");
  EXPECT_EQ(refusal("embeddings.t"), "");
  for (const char* input : {"changed", "twice"})
    EXPECT_THAT(refusal(input), HasSubstr("block pool would take unused positions of a sequence"))
        << input;
  EXPECT_EQ(WhyRefused({{"pool", {"embeddings.other"}, Pool{}}, {"logit", {"pool"}, Logit()}}),
            "block pool: the dataset has no categorical feature 'other'");
}

TEST(Graph, OnlyWhatNeedsNoneInPredictionsTakesNegatives) {
  const auto refusal = [](const std::string& negatives, std::vector<GraphBlock> blocks,
                          bool are_drawn = true) -> std::string {
    blocks.push_back({"query", {"dense"}, Mlp{.layers = {3}}});
    blocks.push_back({"logit", {"query", "embeddings.item", negatives}, SampledSoftmax{}});
    ModelOptions options{.type = kBlocksType,
                         .blocks = SortedGraph(blocks),
                         .num_dense = 3,
                         .tables = {{"item", 3}},
                         .sequences = {{.name = "clicked", .dim = 3, .positions = 2}}};
    if (are_drawn)
      options.sequences.push_back(
          {.name = "item%2Enegatives", .dim = 3, .positions = 4, .negatives_of = "item"});
    try {
      MakeModel(options);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);
      return error.what();
    }
  };
  const std::string drawn = "embeddings.item%2Enegatives";
  EXPECT_EQ(refusal(drawn, {}), "");
  EXPECT_EQ(refusal("unit", {{"unit", {drawn}, L2Normalize{.per_vector = true}}}), "");
  EXPECT_EQ(refusal(drawn, {}, false),
            "block logit: there are no negatives 'item.negatives': say how many "
            "model.negatives.item training draws for each sample");
  EXPECT_EQ(refusal("embeddings.clicked", {}),
            "block logit takes negatives, which embeddings.clicked is not: set model.negatives, "
            "such as {item: 100}, and name embeddings.item.negatives");
  EXPECT_EQ(refusal("mean", {{"mean", {drawn}, Pool{}}}),
            "block mean takes embeddings.item.negatives, but only training has negatives: give "
            "them to a sampled_softmax");
  EXPECT_EQ(refusal("more", {{"more", {drawn, "embeddings.item"}, Append{}}}),
            "block more takes embeddings.item.negatives, but only training has negatives: give "
            "them to a sampled_softmax");
}

TEST(Graph, OutputsAreNamedBlocksWithALogitEach) {
  const auto refusal = [](std::vector<ModelOutput> outputs) -> std::string {
    try {
      const std::vector<GraphBlock> blocks = {{"a", {"dense"}, Logit()},
                                              {"b", {"embeddings"}, Logit()},
                                              {"wide", {"dense"}, Mlp{.layers = {2}}},
                                              {"c", {"wide", "a"}, Concat{}},
                                              {"d", {"c"}, Logit()}};
      MakeModel({.type = kBlocksType,
                 .blocks = SortedGraph(blocks, BlocksOfOutputs(outputs)),
                 .num_dense = 3,
                 .tables = {{"t", 4}},
                 .outputs = outputs});
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(refusal({{"x", "a"}, {"y", "b"}, {"z", "d"}}), "");  // `a` is an input of another, too
  EXPECT_EQ(refusal({{"y", "b"}, {"z", "d"}}), "");
  EXPECT_EQ(refusal({{"x", "a"}, {"z", "d"}}),
            "block b is neither the input of another nor a block of model.outputs");
  EXPECT_EQ(refusal({{"x", "e"}, {"y", "b"}, {"z", "d"}}),
            "no block e gives the output that names it");
  EXPECT_EQ(refusal({{"x", "wide"}, {"y", "b"}, {"z", "d"}}),
            "block wide gives the output x, so it must give one logit, but it gives 1 vector of 2");
  EXPECT_EQ(refusal({{"x", "b"}, {"y", "b"}, {"z", "d"}}),
            "block b gives two outputs: each needs a block of its own");
}

}  // namespace
}  // namespace renzan
