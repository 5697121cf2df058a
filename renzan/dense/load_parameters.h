#pragma once

#include <span>

#include "renzan/checkpoint/reader.h"
#include "renzan/nn/parameters.h"

namespace renzan {

// Reads a model's dense parameters into the flat array `values` [layout.size()]. Throws kData when
// one is missing or has another shape.
void LoadParameters(CheckpointReader& reader, const ParameterLayout& layout,
                    std::span<float> values);

}  // namespace renzan
