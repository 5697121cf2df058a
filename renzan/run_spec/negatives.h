#pragma once

// What `model.negatives` means: a feature's negatives are a further feature, a sequence that shares
// its table, which only training has.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "renzan/data/batch_loader.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/data/sampled_negatives.h"
#include "renzan/run_spec/run_spec.h"

namespace renzan {

using NegativesByFeature = std::map<std::string, int64_t>;  // ModelConfig::negatives

// The schema with these features behind its own, in the order of the names. Throws kConfig for a
// feature that negatives cannot be drawn for.
DatasetSchema WithNegatives(const NegativesByFeature& negatives, const DatasetSchema& schema);

// SequenceInput::negatives_of of a feature of such a schema.
std::string NegativesOf(const NegativesByFeature& negatives, const CategoricalFeature& feature);

// In the same order. `schema`: of the data alone.
std::vector<NegativesOptions> NegativesOptionsOf(const NegativesByFeature& negatives,
                                                 const DatasetSchema& schema);

// That many negatives may be nobody's, a sentence for people, or "". `schema`: of the data.
std::string NegativesOfNobody(const RunSpec& spec, const DatasetSchema& schema);

// What a loader of training batches does with each: draws negatives. Null if there are none.
// `first_step`, `first_sample`: as BatchLoaderOptions::first_step and slice_begin.
ChangeBatch DrawsNegatives(const RunSpec& spec, int64_t first_step, int64_t first_sample);

}  // namespace renzan
