#pragma once

// The tensors of a model without blocks, for other programs: each table's blocks read as one.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "renzan/checkpoint/reader.h"

namespace renzan {

struct WholeTensor {
  TensorInfo info;  // its key is "embedding.C1.weight" for a table
  // The keys of its blocks: that of row block r and column block c is blocks[r][c]. One for a
  // tensor that is not divided.
  std::vector<std::vector<std::string>> blocks;

  int64_t rows() const { return info.shape.empty() ? 1 : info.shape[0]; }
  int64_t row_values() const;
};

// Those of the model, in the order of the keys. Throws Error kData if blocks are missing or do not
// fit together, or if a table is not of F32, F16 or BF16.
std::vector<WholeTensor> WholeTensorsOf(const CheckpointReader& reader);

// Rows [first_row, first_row + n) of a tensor of F32, F16 or BF16, where `out` holds n rows.
// `first_row` must be a multiple of the number of row blocks.
void ReadRows(CheckpointReader& reader, const WholeTensor& tensor, int64_t first_row,
              std::span<float> out);

}  // namespace renzan
