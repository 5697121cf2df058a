#pragma once

// The room that texts need in a file of rows of one size.

#include <span>
#include <vector>

#include "renzan/cli/train/score_columns.h"
#include "renzan/data/dataset/npy_table.h"
#include "renzan/infer/evaluate.h"

namespace renzan {

// Sets the widths of the fields for `columns`, which are these rows'. Texts of a key are measured;
// one-hot features have the room of their vocabulary's longest value; bags are read once for it.
// Throws kData for a text that ends in a zero byte, which NumPy does not keep.
void SetWidths(const Dataset& dataset, RowRange rows, std::span<const ScoreColumn> columns,
               std::vector<NpyField>* fields);

}  // namespace renzan
