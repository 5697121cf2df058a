#include <set>
#include <string>

#include "renzan/base/config/config.h"
#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/data/dataset/manifest.h"

namespace renzan {
namespace {

void CheckName(const std::string& name, std::set<std::string>* seen) {
  if (name.empty()) Fail(ErrorCode::kConfig, "a column of the dataset has an empty name");
  if (!seen->insert(name).second)
    Fail(ErrorCode::kConfig, "column '{}' appears twice in the dataset", name);
}

// Throws kConfig unless the name of the feature's table is its own, or means one that others have.
void CheckTable(const DatasetSchema& schema, const CategoricalFeature& feature) {
  if (feature.table_name() == feature.name) return;
  int users = 0;
  std::vector<std::string> names;
  for (const CategoricalFeature& other : schema.categorical) {
    users += other.table_name() == feature.table_name();
    names.push_back(other.name);
    if (other.name == feature.table_name() && other.table_name() != other.name)
      Fail(ErrorCode::kConfig,
           "feature '{}' has the table '{}', but the feature of that name has the table '{}': name "
           "that",
           feature.name, feature.table_name(), other.table_name());
  }
  if (users > 1) return;
  const std::string nearest = NearestName(feature.table_name(), names);
  Fail(ErrorCode::kConfig,
       "feature '{}' has the table '{}', which no other has: {}name the feature whose table it is "
       "meant to share, or leave it out",
       feature.name, feature.table_name(),
       nearest.empty() ? "" : fmt::format("did you mean '{}'? Otherwise ", nearest));
}

}  // namespace

void CheckSchema(const DatasetSchema& schema) {
  std::set<std::string> seen;
  const auto check_name = [&](const std::string& name) { CheckName(name, &seen); };
  if (schema.has_labels()) check_name(schema.label);
  CHECK(schema.has_labels() || schema.further_labels.empty());
  CHECK(!schema.label_optional || !schema.further_labels.empty());
  if (!schema.further_labels.empty() && schema.negatives_kept != 1)
    Fail(ErrorCode::kConfig,
         "there are several labels, but only {} of the rows with '{}' 0: scores can be corrected "
         "for that only with one label; use all rows",
         schema.negatives_kept, schema.label);
  if (schema.first_label_is_number() && schema.negatives_kept != 1)
    Fail(ErrorCode::kConfig,
         "the label '{}' is a number, but only {} of the rows with 0 are there (negatives_kept), "
         "for which predictions of numbers cannot be corrected: use all rows",
         schema.label, schema.negatives_kept);
  for (const DatasetLabel& label : schema.further_labels) check_name(label.name);
  if (!schema.weight.empty()) check_name(schema.weight);
  for (const std::string& name : schema.dense) check_name(name);
  for (const DenseVector& vector : schema.vectors) check_name(vector.name);
  for (const CategoricalFeature& feature : schema.categorical) {
    check_name(feature.name);
    if (feature.num_embeddings < 1 || feature.num_embeddings > kMaxEmbeddings)
      Fail(ErrorCode::kConfig, "feature '{}' has {}; it must have between 1 and {}", feature.name,
           Counted(feature.num_embeddings, "embedding"), kMaxEmbeddings);
    for (const CategoricalFeature& other : schema.categorical)
      if (other.table_name() == feature.table_name() &&
          (other.num_embeddings != feature.num_embeddings ||
           other.vocabulary != feature.vocabulary))
        Fail(ErrorCode::kConfig,
             "features '{}' and '{}' share table '{}', but not their ids: {} of vocabulary {}, and "
             "{} of {}",
             other.name, feature.name, feature.table_name(), other.num_embeddings, other.vocabulary,
             feature.num_embeddings, feature.vocabulary);
    CheckTable(schema, feature);
    if (!feature.weights.empty()) check_name(feature.weights);
    if (!feature.weights.empty() && feature.max_length > 0)
      Fail(ErrorCode::kConfig,
           "feature '{}' is a sequence with the weights '{}', which only bags have", feature.name,
           feature.weights);
  }
}

void CheckKeys(const std::vector<std::string>& keys, const DatasetSchema& schema) {
  std::set<std::string> seen;
  for (const std::string& name : keys) CheckName(name, &seen);
  if (keys.empty()) return;
  for (const DenseVector& vector : schema.vectors)
    for (int64_t i = 0; i < vector.dimension; ++i)
      if (seen.contains(vector.NameOf(i)))
        Fail(ErrorCode::kConfig,
             "the key '{}' has the name of a number of the vector '{}': give its column another "
             "name",
             vector.NameOf(i), vector.name);
}

}  // namespace renzan
