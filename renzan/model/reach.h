#pragma once

// Whether everything that a dataset has can change a model's logit.

#include <string>

#include "renzan/model/model.h"

namespace renzan {

// Throws kConfig if some input cannot change the logit, whatever the parameters: says why, and what
// to do instead. For training; such a model may still be read.
void CheckInputsReachLogit(const ModelOptions& options);

// What a model whose inputs all reach the logit cannot see of them: a sentence, or "".
std::string LostEffects(const ModelOptions& options);

}  // namespace renzan
