#include "renzan/config/features_config.h"

#include <algorithm>

#include "renzan/config/decides.h"
#include "renzan/data/dataset/dataset.h"

namespace renzan {

void FeaturesConfig::Describe(ConfigFields& fields) {
  fields.Tag(Decides::kModel);
  fields.Field("dense", &dense);
  fields.Field("categorical", &categorical);
  fields.Field("num_embeddings", &num_embeddings, "rows of the table of each categorical feature");
  fields.Field("multi_hot", &multi_hot);
  fields.Field("tables", &tables, "of the categorical features, if any share one");
  fields.Field("max_lengths", &max_lengths, "of the categorical features, if any is a sequence");
  fields.Field("weights", &weights,
               "the columns with the weights of the categorical features' values, if any has some");
  fields.Require(tables.empty() || tables.size() == categorical.size(), "tables",
                 "must have one entry for each categorical feature");
  fields.Require(max_lengths.empty() || max_lengths.size() == categorical.size(), "max_lengths",
                 "must have one entry for each categorical feature");
  for (size_t f = 0; f < std::min(max_lengths.size(), categorical.size()); ++f)
    fields.Require(
        max_lengths[f] == 0 || (max_lengths[f] > 0 && max_lengths[f] <= kMaxSequenceLength &&
                                std::count(multi_hot.begin(), multi_hot.end(), categorical[f]) > 0),
        "max_lengths", "must be 0, or 1 to 4096 for a feature of multi_hot");
  fields.Require(weights.empty() || weights.size() == categorical.size(), "weights",
                 "must have one entry for each categorical feature");
  for (size_t f = 0; f < std::min(weights.size(), categorical.size()); ++f)
    fields.Require(
        weights[f].empty() || (std::count(multi_hot.begin(), multi_hot.end(), categorical[f]) > 0 &&
                               (max_lengths.size() <= f || max_lengths[f] == 0)),
        "weights", "must be empty but for features of multi_hot that are no sequences");
  for (size_t f = 0; f < std::min(tables.size(), num_embeddings.size()); ++f)
    for (size_t g = 0; g < f; ++g)
      fields.Require(tables[f] != tables[g] || num_embeddings[f] == num_embeddings[g],
                     "num_embeddings", "must be the same for features that share a table");
  fields.Field("dense_transforms", &dense_transforms, "the transform of each dense feature");
  fields.Field("vocabularies", &vocabularies,
               "how values of each categorical feature were mapped to ids");
  fields.Field("label", &label, "the name of the first label");
  fields.Field("label_rule", &label_rule, "how labels were mapped to 0 and 1");
  fields.Field("further_label_rules", &further_label_rules, "the same for the others");
  fields.Field("parsing", &parsing, "how the text of each column was read");
  fields.Range("negatives_kept", &negatives_kept, 0, 1,
               "the share of negatives in the training data, for which scores are corrected");
  fields.Require(negatives_kept > 0, "negatives_kept", "must be greater than 0");
  fields.Require(num_embeddings.size() == categorical.size(), "num_embeddings",
                 "must have one entry for each categorical feature");
  fields.Require(std::all_of(num_embeddings.begin(), num_embeddings.end(),
                             [](int64_t n) { return n >= 1 && n <= int64_t{1} << 48; }),
                 "num_embeddings", "must be 1 to 2^48");
  fields.Require(dense_transforms.empty() || dense_transforms.size() == dense.size(),
                 "dense_transforms", "must have one entry for each dense feature");
  fields.Require(vocabularies.empty() || vocabularies.size() == categorical.size(), "vocabularies",
                 "must have one entry for each categorical feature");
}

}  // namespace renzan
