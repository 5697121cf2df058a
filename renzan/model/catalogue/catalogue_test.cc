#include "renzan/model/catalogue/catalogue.h"

#include <gtest/gtest.h>

namespace renzan {
namespace {

// With all that some model needs: dense features, items, a history, negatives and two labels.
ModelOptions OptionsOfAll(const CatalogueEntry& entry) {
  ModelOptions options{
      .type = entry.name,
      .num_dense = 2,
      .tables = {{"item", RowColumns(entry.name, 4)}, {"user", RowColumns(entry.name, 4)}},
      .embedding_dim = 4,
      .sizes = {.bottom_mlp = {4},
                .top_mlp = {4},
                .expert_mlp = {4},
                .item_features = {"item"},
                .tower_mlp = {4},
                .cross_rank = 2}};
  if (entry.needs_sequences)
    options.sequences = {{.name = "clicked", .dim = 4, .positions = 3, .target = "item"}};
  if (entry.takes_negatives)
    options.sequences.push_back(
        {.name = "item%2Enegatives", .dim = 4, .positions = 2, .negatives_of = "item"});
  if (entry.has_several_outputs()) options.outputs = entry.outputs({"a", "b"});
  return options;
}

TEST(CatalogueEntries, SayWhichModelsCompareItems) {
  std::vector<std::string> names;
  for (const CatalogueEntry& entry : Catalogue()) {
    EXPECT_EQ(MakeModel(OptionsOfAll(entry))->ComparesItems(0), entry.compares_items) << entry.name;
    if (entry.compares_items) names.push_back(entry.name);
  }
  ASSERT_EQ(names.size(), 3u);
  EXPECT_EQ(ModelsThatCompareItems(), names[0] + ", " + names[1] + " or " + names[2]);
}

}  // namespace
}  // namespace renzan
