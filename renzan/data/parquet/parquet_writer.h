#pragma once

// Writes a Parquet file: columns of numbers and texts without nulls, uncompressed, in PLAIN
// encoding, which every reader of Parquet understands. Memory is bounded by that of a row group.
// Not thread-safe.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/base/file/file.h"

namespace renzan {

struct ParquetColumn {
  enum class Type { kFloat, kInt64, kText, kBytes };  // kText is UTF-8
  std::string name;
  Type type = Type::kFloat;
};

class ParquetWriter {
 public:
  static constexpr size_t kRowGroupBytes = size_t{16} << 20;

  // A row group is written as soon as its values take `row_group_bytes` bytes.
  ParquetWriter(std::string path, std::vector<ParquetColumn> columns,
                size_t row_group_bytes = kRowGroupBytes);

  // Appends a value of the column's type; of each column one, then EndRow().
  void Append(size_t column, float value);
  void Append(size_t column, int64_t value);
  void Append(size_t column, std::string_view value);
  void EndRow();

  // Writes the metadata, fsyncs and closes. Without Close() the file is removed.
  void Close();

 private:
  struct Chunk {
    int64_t offset = 0, bytes = 0;  // of its page, with the page's header
  };
  struct RowGroup {
    int64_t rows = 0;
    std::vector<Chunk> chunks;  // by column
  };
  // Of a column in the row group that is being filled.
  struct Values {
    std::string bytes;
    int64_t count = 0;
  };

  Values& Next(size_t column, bool has_type);
  void FlushRowGroup();
  std::string Metadata() const;

  FileWriter file_;
  const std::vector<ParquetColumn> columns_;
  const size_t row_group_bytes_;
  std::vector<Values> values_;
  size_t buffered_bytes_ = 0;
  int64_t rows_ = 0;  // of the row group that is being filled
  std::vector<RowGroup> row_groups_;
};

}  // namespace renzan
