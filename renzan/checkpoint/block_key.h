#pragma once

// Under which names the blocks of embedding tables are saved. Blocks are the unit of a checkpoint,
// whatever the plan that wrote or reads it.

#include <optional>
#include <string>

namespace renzan {

// Row r of a table is row r / row_blocks of row block r mod row_blocks; column blocks lie side by
// side.
struct BlockKey {
  std::string table;  // as in keys and names of files: escaped
  int row_block = 0, row_blocks = 1;
  int column_block = 0, column_blocks = 1;

  // "C1", or with several blocks "C1.row_block_3_of_8.column_block_0_of_2".
  std::string Name() const;
  // The beginning of its tensors' keys: "embedding.C1".
  std::string Key() const { return "embedding." + Name(); }
  // The beginning of its files' names: "table.C1". A long name of a table is cut (BoundedFileName);
  // readers know files from the manifest only.
  std::string FileStem() const;

  bool operator==(const BlockKey&) const = default;
};

// A key such as "embedding.C1.row_block_3_of_8.weight/adagrad" in parts.
struct TableTensorKey {
  BlockKey block;
  std::string rest;  // ".weight/adagrad"
};

// Nothing for a tensor that belongs to no table.
std::optional<TableTensorKey> ParseTableTensorKey(const std::string& key);

}  // namespace renzan
