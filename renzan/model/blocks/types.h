#pragma once

// All types of blocks, by the names that configurations use.

#include <string>
#include <vector>

#include "renzan/model/blocks/block.h"

namespace renzan {

std::vector<std::string> BlockTypeNames();
// With default options. Throws kConfig for an unknown name.
BlockOptions BlockOfType(const std::string& name);

}  // namespace renzan
