#include "renzan/run_spec/negatives.h"

#include <algorithm>

#include "renzan/base/config/config.h"
#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/file/file.h"
#include "renzan/data/vocabulary.h"

namespace renzan {
namespace {

size_t FeatureNamed(const std::string& name, const DatasetSchema& schema) {
  std::vector<std::string> names;
  for (const CategoricalFeature& feature : schema.categorical) names.push_back(feature.name);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  const std::string nearest = NearestName(name, names);
  Fail(ErrorCode::kConfig, "model.negatives.{}: the dataset has no categorical feature '{}'{}",
       Escape(name), Escape(name), nearest.empty() ? "" : ": did you mean '" + nearest + "'?");
}

const CategoricalFeature& CheckedFeature(const std::string& name, const DatasetSchema& schema) {
  const CategoricalFeature& feature = schema.categorical[FeatureNamed(name, schema)];
  if (feature.multi_hot)
    Fail(ErrorCode::kConfig,
         "model.negatives.{}: a sample has several values of '{}': negatives take the place of one "
         "value, such as the item's",
         Escape(name), Escape(name));
  if (const int64_t known = feature.num_embeddings - FirstKnownId(feature.vocabulary); known < 2)
    Fail(ErrorCode::kConfig,
         "model.negatives.{}: the table '{}' has fewer than two ids of known values, so there is "
         "no other one to draw: import more data, or leave model.negatives out",
         Escape(name), Escape(feature.table_name()));
  return feature;
}

}  // namespace

DatasetSchema WithNegatives(const NegativesByFeature& negatives, const DatasetSchema& schema) {
  DatasetSchema with = schema;
  for (const auto& [name, count] : negatives) {
    const CategoricalFeature& of = CheckedFeature(name, schema);
    const std::string own = name + kNegativesSuffix;
    if (std::any_of(schema.categorical.begin(), schema.categorical.end(),
                    [&](const CategoricalFeature& other) { return other.name == own; }))
      Fail(ErrorCode::kConfig,
           "model.negatives.{}: the dataset has a feature '{}', the name of the negatives: import "
           "it under another name",
           Escape(name), Escape(own));
    with.categorical.push_back({.name = own,
                                .num_embeddings = of.num_embeddings,
                                .multi_hot = true,
                                .vocabulary = of.vocabulary,
                                .table = of.table_name(),
                                .max_length = count});
  }
  return with;
}

std::string NegativesOf(const NegativesByFeature& negatives, const CategoricalFeature& feature) {
  for (const auto& [name, count] : negatives)
    if (feature.name == name + kNegativesSuffix) return EscapeName(name);
  return "";
}

std::vector<NegativesOptions> NegativesOptionsOf(const NegativesByFeature& negatives,
                                                 const DatasetSchema& schema) {
  std::vector<NegativesOptions> options;
  for (const auto& [name, count] : negatives) {
    const CategoricalFeature& feature = CheckedFeature(name, schema);
    options.push_back({.name = name,
                       .feature = FeatureNamed(name, schema),
                       .count = count,
                       .ids_begin = FirstKnownId(feature.vocabulary),
                       .ids_end = feature.num_embeddings});
  }
  return options;
}

std::string NegativesOfNobody(const RunSpec& spec, const DatasetSchema& schema) {
  for (const NegativesOptions& negatives : spec.negatives)
    if (const CategoricalFeature& feature = schema.categorical[negatives.feature];
        feature.vocabulary.starts_with("hash:"))
      return fmt::format(
          "model.negatives.{} draws from all {} of a hashed vocabulary, and those that no "
          "value has are easy to tell from items: import the data with a vocabulary of "
          "threshold:1, so that every row is a value's",
          Escape(negatives.name), Counted(feature.num_embeddings - negatives.ids_begin, "row"));
  return "";
}

ChangeBatch DrawsNegatives(const RunSpec& spec, int64_t first_step, int64_t first_sample) {
  if (spec.negatives.empty()) return nullptr;
  return
      [negatives = SampledNegatives(spec.seed, spec.negatives), first_step, first_sample](
          int64_t index, Batch* batch) { negatives.Draw(first_step + index, first_sample, batch); };
}

}  // namespace renzan
