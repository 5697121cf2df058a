#pragma once

// A block applied to each vector of its input by itself, with the same parameters: the vectors of
// all samples are the rows of one matrix, of a sequence those that are used. Takes vectors of one
// dimension and gives as many of another one, with their names; of a sequence, a sequence.

#include <functional>
#include <memory>

#include "renzan/model/blocks/block.h"

namespace renzan {

// `make` makes the block for one vector; it gives one.
std::unique_ptr<Block> MakePerVector(
    const BlockPlace& place,
    const std::function<std::unique_ptr<Block>(const BlockPlace& of_one)>& make);

}  // namespace renzan
