#include "renzan/model/column_differences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "renzan/model/blocks/concat.h"
#include "renzan/model/blocks/cross.h"
#include "renzan/model/blocks/mlp.h"
#include "renzan/model/blocks/sum.h"

namespace renzan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string> kTwoDense = {"age", "price"};

ModelOptions OptionsOfType(const std::string& type) {
  ModelOptions options{
      .type = type, .num_dense = 2, .tables = {{"user", 4}, {"item", 4}}, .embedding_dim = 4};
  options.sizes.bottom_mlp = {6};
  options.sizes.top_mlp = {6};
  options.sizes.cross_layers = 1;
  options.sizes.cross_rank = 2;
  if (type == "deepfm" || type == "fm")
    for (TableInput& table : options.tables) table.dim = 5;
  return options;
}

ColumnDifferences Compare(const ModelOptions& there, const ModelOptions& here,
                          const std::vector<std::string>& dense_there = kTwoDense) {
  return CompareColumns({there, dense_there}, {here, kTwoDense}, MakeModel(here)->layout());
}

TEST(ColumnDifferences, AModelAndItsGraphAreTheSame) {
  for (const char* type : {"dlrm", "dlrm_dcnv2", "deepfm"}) {
    const ModelOptions named = OptionsOfType(type);
    ModelOptions stated = named;
    stated.type = kBlocksType;
    stated.blocks = SortedGraph(GraphOf(named));
    for (const auto& [there, here] : {std::pair{named, stated}, {stated, named}}) {
      const ColumnDifferences differences = Compare(there, here);
      EXPECT_THAT(differences.parameters, IsEmpty()) << type;
      EXPECT_FALSE(differences.rows || differences.outputs) << type;
    }
  }
}

// The sizes are the same, but not what the weights are of.
TEST(ColumnDifferences, OtherFeaturesAreOtherColumns) {
  ModelOptions replaced = OptionsOfType("dlrm"), reordered = replaced;
  replaced.tables = {{"user", 4}, {"shop", 4}};
  reordered.tables = {{"item", 4}, {"user", 4}};
  for (const ModelOptions& here : {replaced, reordered}) {
    const ColumnDifferences differences = Compare(OptionsOfType("dlrm"), here);
    EXPECT_THAT(differences.parameters, ElementsAre("top.0.weight"));
  }
  EXPECT_THAT(Compare(OptionsOfType("dlrm"), OptionsOfType("dlrm"), {"price", "age"}).parameters,
              ElementsAre("bottom.0.weight"));
  // A cross network gives the columns that it takes.
  ModelOptions crossed = OptionsOfType("dlrm_dcnv2");
  crossed.tables = reordered.tables;
  EXPECT_THAT(Compare(OptionsOfType("dlrm_dcnv2"), crossed).parameters,
              ElementsAre("cross.0.bias", "cross.0.v", "cross.0.w", "top.0.weight"));
  ModelOptions factors = OptionsOfType("fm");
  factors.tables.pop_back();
  EXPECT_THAT(Compare(OptionsOfType("fm"), factors).parameters, IsEmpty()) << "first_order.bias";
  // Two dimensions that change places.
  ModelOptions wide = OptionsOfType("dlrm_dcnv2"), narrow = wide;
  wide.tables[0].dim = narrow.tables[1].dim = 8;
  EXPECT_EQ(Compare(wide, narrow).parameters.size(), 4);
}

TEST(ColumnDifferences, OtherBlocksAreOthers) {
  const ColumnDifferences differences = Compare(OptionsOfType("deepfm"), OptionsOfType("fm"));
  EXPECT_THAT(differences.parameters, IsEmpty());
  EXPECT_FALSE(differences.rows);
  EXPECT_TRUE(differences.outputs);
  EXPECT_TRUE(Compare(OptionsOfType("dlrm"), OptionsOfType("fm")).rows);

  const Mlp logit{.layers = {1}, .linear_output = true};
  const auto with = [&](std::vector<GraphBlock> blocks) {
    ModelOptions options = OptionsOfType(kBlocksType);
    options.blocks = SortedGraph(std::move(blocks));
    return options;
  };
  const ModelOptions both = with({{"all", {"dense", "embeddings"}, Concat{}},
                                  {"a", {"all"}, logit},
                                  {"b", {"all"}, logit},
                                  {"logit", {"a", "b"}, Sum{}}});
  const ModelOptions turned = with({{"all", {"embeddings", "dense"}, Concat{}},
                                    {"a", {"all"}, logit},
                                    {"b", {"all"}, logit},
                                    {"logit", {"a", "b"}, Sum{}}});
  EXPECT_THAT(Compare(both, turned).parameters, ElementsAre("a.0.weight", "b.0.weight"));
  EXPECT_FALSE(Compare(both, turned).outputs) << "the sum of the same MLPs";
  const ModelOptions weighed = with({{"all", {"dense", "embeddings"}, Concat{}},
                                     {"a", {"all"}, Mlp{.layers = {10}}},
                                     {"logit", {"a"}, logit}});
  const ModelOptions crossed = with({{"all", {"dense", "embeddings"}, Concat{}},
                                     {"a", {"all"}, Cross{.layers = 1}},
                                     {"logit", {"a"}, logit}});
  EXPECT_THAT(Compare(weighed, crossed).parameters,
              ElementsAre("a.0.bias", "a.0.w", "logit.0.weight"));
}

}  // namespace
}  // namespace renzan
