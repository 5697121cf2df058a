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

// Some columns of consecutive rows of one row block.
struct RowsOfBlock {
  size_t row_block = 0;
  int64_t first_row = 0, num_rows = 0;  // of the row block's
  int64_t first_column = 0, num_columns = 0;
};

// Reads them from the column blocks into `out`, where a row begins every `stride` values; of a
// tensor with one value per row, that value, whatever the columns. `part` is memory that calls
// reuse.
void ReadRowsOfBlock(CheckpointReader& reader, const WholeTensor& tensor, const RowsOfBlock& rows,
                     size_t stride, std::span<float> out, std::vector<float>* part);

// Rows [first_row, first_row + n) of a tensor of F32, F16 or BF16, where `out` holds n rows.
// `first_row` must be a multiple of the number of row blocks.
void ReadRows(CheckpointReader& reader, const WholeTensor& tensor, int64_t first_row,
              std::span<float> out);

}  // namespace renzan
