#pragma once

// How the features of a batch become the inputs of a model: whose rows they look up, where these
// are written, and which of them are sequences.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "renzan/data/batch.h"
#include "renzan/model/model.h"
#include "renzan/plan/bag_places.h"
#include "renzan/plan/table_spec.h"

namespace renzan {

struct FeatureLookups {
  // Of a batch, one table's after another: of its `categorical`, and behind those of its
  // `negatives`.
  std::vector<size_t> features;
  std::vector<BagPlace> places;   // of all bags, in Model::Workspace::features
  std::vector<size_t> pooled;     // the features of ModelOptions::tables
  std::vector<size_t> sequences;  // the features of ModelOptions::sequences

  // What one of `features` looks up: negatives nothing in a batch without them, as in evaluation.
  // Valid until the next call with a batch of another size.
  const FeatureIds& IdsOf(const Batch& batch, size_t feature);

  // Sets the lengths of the sequences for samples [first, first + n) of the batch.
  void ReadLengths(const Batch& batch, int64_t first, int64_t n, Model::Workspace* workspace) const;

  FeatureIds empty = {};  // bags
};

// `features`: as RunSpec::features.
FeatureLookups LookupsOf(std::span<const TableSpec> tables, const std::vector<size_t>& features,
                         const Model& model);

}  // namespace renzan
