#pragma once

// A saved model as one plain safetensors file, for other programs.

#include <string>

#include "renzan/checkpoint/model_store.h"

namespace renzan {

// Writes all tensors in the order of their keys, or without optimizer states when `weights_only`;
// step and model_sha256 go into the file's metadata. Verifies the model on the way. Returns the
// number of tensors. Throws Error kCantCreate when `path` exists.
int64_t ExportModel(ModelReader& model, const std::string& path, bool weights_only = false);

// Whether `key` names an optimizer's state ("bottom.0.weight/adagrad") and not a parameter.
bool IsOptimizerState(const std::string& key);

}  // namespace renzan
