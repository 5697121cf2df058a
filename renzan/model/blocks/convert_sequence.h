#pragma once

// What a model puts between a value that is a sequence and a block that takes it in another layout
// (VectorLayout). From columns to rows, and from either to the newest positions; from rows to
// columns, where unused positions become zeros.

#include <memory>

#include "renzan/model/blocks/block.h"

namespace renzan {

// For a sequence of vectors of this shape, all of one dimension.
std::unique_ptr<Block> MakeConvertSequence(const Shape& shape, const SequenceId& sequence,
                                           VectorLayout from, VectorLayout to);

}  // namespace renzan
