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
  std::vector<size_t> features;   // of a batch, one table's after another
  std::vector<BagPlace> places;   // of all bags, in Model::Workspace::features
  std::vector<size_t> sequences;  // the features of ModelOptions::sequences

  // Sets the lengths of the sequences for samples [first, first + n) of the batch.
  void ReadLengths(const Batch& batch, int64_t first, int64_t n, Model::Workspace* workspace) const;
};

// `features`: as RunSpec::features.
FeatureLookups LookupsOf(std::span<const TableSpec> tables, const std::vector<size_t>& features,
                         const Model& model);

}  // namespace renzan
