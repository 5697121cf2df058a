#pragma once

// Exports the model of a checkpoint as one plain safetensors file, for other programs.

#include <string>

#include "renzan/checkpoint/reader.h"

namespace renzan {

// Verifies the checkpoint and writes the model's tensors in the order of their keys, without
// optimizer states if `weights_only`, in constant memory. An incremental checkpoint is merged with
// its base. The file's metadata holds the step and, if known, model_sha256 and quantization.
// Returns the number of tensors. Throws Error kCantCreate when `path` exists.
int64_t ExportModel(CheckpointReader& model, const std::string& path, bool weights_only = false);

// Whether `key` names an optimizer's state ("bottom.0.weight/adagrad") and not a parameter. Tensors
// that PyTorch programs save under "model." are parameters, whatever their modules are called.
bool IsOptimizerState(const std::string& key);

// `given` with the ending .safetensors, which is added to the name of a file without an ending.
// Empty if it has another one, or is a directory or a bucket.
std::string ExportName(const std::string& given);

}  // namespace renzan
