#pragma once

// Saves a HybridModel as a model directory and loads one into it, on any number of workers. The
// files and the model's SHA-256 do not depend on the placement. Every rank makes the same calls.

#include <string>

#include "renzan/checkpoint/model_store.h"
#include "renzan/comm/communicator.h"
#include "renzan/train/hybrid_model.h"

namespace renzan {

// Writes parameters, rows and optimizer states; returns the model's SHA-256 on every rank.
std::string SaveModel(HybridModel& model, Communicator& comm, const std::string& directory,
                      int64_t step, const std::string& config_yaml);

// Optimizer states are loaded too where `with_optimizer`. Throws kData when a tensor is missing or
// has another shape.
void LoadModel(ModelReader& reader, bool with_optimizer, HybridModel* model);

}  // namespace renzan
