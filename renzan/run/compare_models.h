#pragma once

// The model that a run starts from (initialize.h) and the run's own: what both have.

#include <string>
#include <vector>

#include "renzan/checkpoint/reader.h"
#include "renzan/config/train_config.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/run_spec/run_spec.h"
#include "renzan/saving/match_parts.h"

namespace renzan {

struct ModelComparison {
  PartMatch parts;
  // "the dense feature 'age' is missing here", of features whose tables do not say so.
  std::vector<std::string> features;
  // Whether other blocks compute an output, though all parts may be the same.
  bool outputs_differ = false;

  bool same() const {
    return parts.begin_anew.empty() && parts.left.empty() && features.empty() && !outputs_differ;
  }
};

// Whether both sides have features of the same names.
bool HaveSameFeatures(const FeaturesConfig& there, const DatasetSchema& schema);

// `there`: the configuration that the model in `reader` was trained with; `schema`: of the run's
// data, with which CheckFeatures() has compared the features that both have. Reads no values.
ModelComparison CompareModels(const CheckpointReader& reader, const TrainConfig& there,
                              const RunSpec& spec, const DatasetSchema& schema);

// Throws kConfig if nothing is the same, or unless all is or `partly`; the message names the first
// ten differences, and what allows them.
void CheckDifferences(const ModelComparison& comparison, const std::string& type_there,
                      const std::string& type_here, bool partly);

// The first feature of a table, an index of the dataset's categorical features, that the earlier
// model has, too. -1: none.
int64_t FirstCommonFeature(const FeaturesConfig& there, const RunSpec& spec, size_t table,
                           const DatasetSchema& schema);

}  // namespace renzan
