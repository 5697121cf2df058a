#pragma once

// What a checkpoint holds of a run besides its model.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace renzan {

// Integers by tensor name, as docs/formats/checkpoint.md describes them.
using ProgressTensors = std::map<std::string, std::vector<int64_t>>;

}  // namespace renzan
