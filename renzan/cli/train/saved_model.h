#pragma once

// Shared by `eval` and `predict`: loads a saved model and opens a dataset.

#include <functional>
#include <string>
#include <vector>

#include "renzan/cli/train/workers.h"
#include "renzan/config/train_config.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/infer/evaluate.h"

namespace CLI {
class App;
}

namespace renzan {

struct SavedModelFlags {
  std::string model, data;
  std::vector<std::string> overrides;
  std::vector<int64_t> rows;
  int workers = 1, threads = 0;
  std::string backend = "auto";
};

// `needs_data`: whether --data is required.
void AddSavedModelFlags(CLI::App& verb, SavedModelFlags& flags, bool needs_data);

// Loads the model (see FindModel) on one or several workers and calls `body` on each. Without
// --data, that is with the data.eval of the model's configuration; throws kUsage if it has none.
// Returns the exit status.
int WithSavedModel(
    const SavedModelFlags& flags,
    const std::function<void(Predictor& model, const TrainConfig& config, Communicator& comm,
                             const Dataset& dataset, RowRange rows)>& body);

}  // namespace renzan
