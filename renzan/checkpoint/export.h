#pragma once

// A checkpoint's model as one plain safetensors file, for other programs.

#include <string>

#include "renzan/checkpoint/reader.h"

namespace renzan {

// Writes the model's tensors in the order of their keys, or without optimizer states when
// `weights_only`, in constant memory; an incremental checkpoint comes out whole. The step, and the
// model_sha256 and quantization where there are, go into the file's metadata. Verifies the
// checkpoint on the way. Returns the number of tensors. Throws Error kCantCreate when `path`
// exists.
int64_t ExportModel(CheckpointReader& model, const std::string& path, bool weights_only = false);

// Whether `key` names an optimizer's state ("bottom.0.weight/adagrad") and not a parameter.
bool IsOptimizerState(const std::string& key);

}  // namespace renzan
