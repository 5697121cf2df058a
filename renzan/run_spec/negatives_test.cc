#include "renzan/run_spec/negatives.h"

#include <gtest/gtest.h>

#include "renzan/base/error.h"

namespace renzan {
namespace {

DatasetSchema ShopSchema(const std::string& vocabulary = "threshold:1:abc") {
  return {.label = "label",
          .categorical = {{.name = "user", .num_embeddings = 9},
                          {.name = "item", .num_embeddings = 50, .vocabulary = vocabulary},
                          {.name = "clicked",
                           .num_embeddings = 50,
                           .multi_hot = true,
                           .vocabulary = vocabulary,
                           .table = "item",
                           .max_length = 4}}};
}

TrainConfig ConfigOfShop(const NegativesByFeature& negatives) {
  TrainConfig config;
  config.model.type = "sasrec";
  config.model.negatives = negatives;
  return config;
}

TEST(Negatives, AreAFurtherSequenceOfTheFeaturesTable) {
  const RunSpec spec =
      MakeRunSpec(ConfigOfShop({{"item", 7}}), ShopSchema(), std::vector<double>{1, 1, 2.5});
  ASSERT_EQ(spec.tables.size(), 2u);
  EXPECT_EQ(spec.tables[1].features, (std::vector<int64_t>{0, 4, 7}));
  EXPECT_EQ(spec.tables[1].pooling_factor, 10.5);
  EXPECT_EQ(spec.features, (std::vector<size_t>{0, 1, 2, 3}));
  ASSERT_EQ(spec.model.sequences.size(), 2u);
  EXPECT_EQ(spec.model.sequences[1].name, "item%2Enegatives");
  EXPECT_EQ(spec.model.sequences[1].negatives_of, "item");
  EXPECT_EQ(spec.model.sequences[1].positions, 7);
  EXPECT_EQ(spec.model.sequences[0].negatives_of, "");
  ASSERT_EQ(spec.negatives.size(), 1u);
  EXPECT_EQ(spec.negatives[0].feature, 1u);
  EXPECT_EQ(spec.negatives[0].count, 7);
  // 0 is a missing value, and 1 an unseen one.
  EXPECT_EQ(spec.negatives[0].ids_begin, 2);
  EXPECT_EQ(spec.negatives[0].ids_end, 50);
  EXPECT_EQ(NegativesOfNobody(spec, ShopSchema()), "");
}

TEST(Negatives, OfHashedValuesMayBeNobodys) {
  const DatasetSchema schema = ShopSchema("hash:50");
  const RunSpec spec =
      MakeRunSpec(ConfigOfShop({{"item", 7}}), schema, std::vector<double>{1, 1, 1});
  EXPECT_EQ(spec.negatives[0].ids_begin, 1);
  EXPECT_EQ(NegativesOfNobody(spec, schema),
            "model.negatives.item draws from all 49 rows of a hashed vocabulary, and those that no "
            "value has are easy to tell from items: import the data with a vocabulary of "
            "threshold:1, so that every row is a value's");
}

TEST(Negatives, AreRefusedWhereTheyCannotBeDrawn) {
  const auto refusal = [](const std::string& feature, const DatasetSchema& schema) -> std::string {
    try {
      ModelOptionsOf(ConfigOfShop({{feature, 2}}), schema);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);
      return error.what();
    }
  };
  DatasetSchema schema = ShopSchema();
  EXPECT_EQ(refusal("item", schema), "");
  EXPECT_EQ(refusal("items", schema),
            "model.negatives.items: the dataset has no categorical feature 'items': did you mean "
            "'item'?");
  EXPECT_EQ(refusal("clicked", schema),
            "model.negatives.clicked: a sample has several values of 'clicked': negatives take the "
            "place of one value, such as the item's");
  schema.categorical[1].num_embeddings = 4;
  EXPECT_EQ(refusal("item", schema), "");
  schema.categorical[1].num_embeddings = 3;
  EXPECT_EQ(refusal("item", schema),
            "model.negatives.item: the table 'item' has fewer than two ids of known values, so "
            "there is no other one to draw: import more data, or leave model.negatives out");
  schema = ShopSchema();
  schema.categorical.push_back({.name = "item.negatives", .num_embeddings = 4});
  EXPECT_EQ(refusal("item", schema),
            "model.negatives.item: the dataset has a feature 'item.negatives', the name of the "
            "negatives: import it under another name");
}

}  // namespace
}  // namespace renzan
