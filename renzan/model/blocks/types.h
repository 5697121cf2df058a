#pragma once

// All types of blocks, by the names that configurations use.

#include <string>
#include <vector>

#include "renzan/model/blocks/block.h"

namespace renzan {

std::vector<std::string> BlockTypeNames();
// What to use instead of a name that other programs have and configurations do not: "mlp with
// linear_output: true" for linear. "": nothing is known.
std::string InsteadOfBlockType(const std::string& name);
// With default options. Throws kConfig for an unknown name.
BlockOptions BlockOfType(const std::string& name);

}  // namespace renzan
