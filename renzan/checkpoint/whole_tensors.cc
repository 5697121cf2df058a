#include "renzan/checkpoint/whole_tensors.h"

#include <algorithm>
#include <map>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/checkpoint/block_key.h"

namespace renzan {
namespace {

// Whether the tensor has one value per row, so that all column blocks hold the same ones.
bool IsPerRow(const TensorInfo& info) { return info.shape.size() == 1; }

// Fills in the shape, from the blocks.
void Compose(const CheckpointReader& reader, WholeTensor* whole) {
  const auto fail = [&](const std::string& what) {
    Fail(ErrorCode::kData, "{}: the blocks of '{}' do not make up a table: {}", reader.dir(),
         whole->info.key, what);
  };
  const int64_t row_blocks = std::ssize(whole->blocks);
  int64_t rows = 0, columns = 0;
  for (size_t r = 0; r < whole->blocks.size(); ++r) {
    int64_t width = 0;
    for (const std::string& key : whole->blocks[r]) {
      if (key.empty()) fail(fmt::format("one of row block {} is missing", r));
      const TensorInfo& block = reader.FloatInfo(key);
      if (block.shape.empty() || block.shape.size() > 2 || block.dtype != whole->info.dtype ||
          block.shape[0] != reader.FloatInfo(whole->blocks[r][0]).shape[0])
        fail(fmt::format("'{}' is {} {}", key, Name(block.dtype), ShapeText(block.shape)));
      width += IsPerRow(block) ? 0 : block.shape[1];
    }
    rows += reader.FloatInfo(whole->blocks[r][0]).shape[0];
    if (r == 0) columns = width;
    if (width != columns) fail(fmt::format("row block {} has {}", r, Counted(width, "column")));
  }
  for (int64_t r = 0; r < row_blocks; ++r) {
    const int64_t here = reader.FloatInfo(whole->blocks[static_cast<size_t>(r)][0]).shape[0];
    if (here != (rows - r + row_blocks - 1) / row_blocks)
      fail(fmt::format("row block {} has {}", r, Counted(here, "row")));
  }
  whole->info.shape =
      columns == 0 ? std::vector<int64_t>{rows} : std::vector<int64_t>{rows, columns};
}

}  // namespace

int64_t WholeTensor::row_values() const {
  return NumElements(info.shape) / std::max<int64_t>(1, rows());
}

std::vector<WholeTensor> WholeTensorsOf(const CheckpointReader& reader) {
  std::map<std::string, WholeTensor> tensors;
  const std::vector<std::string> keys = reader.keys();
  for (const std::string& key : keys) {
    if (!IsModelTensor(key)) continue;
    const std::optional<TableTensorKey> parts = ParseTableTensorKey(key);
    const TensorInfo& info = parts ? reader.FloatInfo(key) : reader.Info(key);
    if (!parts || parts->block.Name() == parts->block.table) {
      tensors[key] = {.info = info, .blocks = {{key}}};
      continue;
    }
    const BlockKey& block = parts->block;
    const std::string name = "embedding." + block.table + parts->rest;
    WholeTensor& whole = tensors[name];
    if (static_cast<size_t>(block.row_blocks) * static_cast<size_t>(block.column_blocks) >
        keys.size())
      Fail(ErrorCode::kData, "{}: some of the blocks of '{}' are missing", reader.dir(), name);
    if (whole.blocks.empty()) {
      whole.info = {.key = name, .shape = {}, .dtype = info.dtype};
      whole.blocks.assign(static_cast<size_t>(block.row_blocks),
                          std::vector<std::string>(static_cast<size_t>(block.column_blocks)));
    }
    const size_t r = static_cast<size_t>(block.row_block);
    const size_t c = static_cast<size_t>(block.column_block);
    if (r >= whole.blocks.size() || c >= whole.blocks[r].size())
      Fail(ErrorCode::kData, "{}: '{}' does not fit the other blocks of '{}'", reader.dir(), key,
           name);
    whole.blocks[r][c] = key;
  }
  std::vector<WholeTensor> result;
  for (auto& [key, whole] : tensors) {
    if (whole.blocks.size() > 1 || whole.blocks[0].size() > 1) Compose(reader, &whole);
    result.push_back(std::move(whole));
  }
  return result;
}

void ReadRowsOfBlock(CheckpointReader& reader, const WholeTensor& tensor, const RowsOfBlock& rows,
                     size_t stride, std::span<float> out, std::vector<float>* part) {
  const size_t n = static_cast<size_t>(rows.num_rows);
  const bool per_row = IsPerRow(tensor.info);
  const int64_t first_column = per_row ? 0 : rows.first_column;
  const int64_t last_column = per_row ? 1 : first_column + rows.num_columns;
  int64_t column = 0;  // the column block's first one
  for (const std::string& key : tensor.blocks[rows.row_block]) {
    const int64_t columns = per_row ? 1 : reader.FloatInfo(key).shape[1];
    const int64_t begin = std::max(column, first_column);
    const int64_t end = std::min(column + columns, last_column);
    const size_t block_width = static_cast<size_t>(columns);
    if (end - begin == columns && block_width == stride) {
      reader.Read(key, rows.first_row * columns, out.first(n * stride));
    } else if (begin < end) {
      part->resize(n * block_width);
      reader.Read(key, rows.first_row * columns, *part);
      for (size_t row = 0; row < n; ++row)
        std::copy_n(part->data() + row * block_width + (begin - column), end - begin,
                    out.data() + row * stride + (begin - first_column));
    }
    if (per_row) break;
    column += columns;
  }
}

void ReadRows(CheckpointReader& reader, const WholeTensor& tensor, int64_t first_row,
              std::span<float> out) {
  const size_t row_blocks = tensor.blocks.size();
  if (row_blocks == 1 && tensor.blocks[0].size() == 1)
    return reader.Read(tensor.blocks[0][0], first_row * tensor.row_values(), out);
  CHECK(first_row % static_cast<int64_t>(row_blocks) == 0);
  const size_t width = static_cast<size_t>(tensor.row_values());
  const size_t rows = out.size() / width;
  std::vector<float> part;
  for (size_t r = 0; r < std::min(row_blocks, rows); ++r)
    ReadRowsOfBlock(reader, tensor,
                    {.row_block = r,
                     .first_row = first_row / static_cast<int64_t>(row_blocks),
                     .num_rows = static_cast<int64_t>((rows - r + row_blocks - 1) / row_blocks),
                     .num_columns = tensor.row_values()},
                    row_blocks * width, out.subspan(r * width), &part);
}

}  // namespace renzan
