#pragma once

// Whether everything that a dataset has can change a model's logit.

#include <cstdint>
#include <string>

#include "renzan/model/model.h"

namespace renzan {

// Throws kConfig if some input cannot change the logit, whatever the parameters; the message says
// why and what to do instead. For training: such a model may still be loaded.
void CheckInputsReachLogit(const ModelOptions& options);

// Throws kConfig if there is no such model, or if blocks normalize by the samples of a virtual
// worker, or compare them, but it has only one: then no input can change what they give. For
// training.
void CheckBatchStatistics(const ModelOptions& options, int64_t samples_per_virtual_worker);

// What the model cannot see although all its inputs reach the logit: a sentence, or "".
std::string LostEffects(const ModelOptions& options);

}  // namespace renzan
