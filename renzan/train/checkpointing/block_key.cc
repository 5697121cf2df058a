#include "renzan/train/checkpointing/block_key.h"

#include <fmt/format.h>

#include "renzan/base/file/file.h"

namespace renzan {
namespace {

std::string Named(const char* kind, const EmbeddingShard& shard,
                  const EmbeddingShard::Block& block) {
  std::string name = fmt::format("{}.{}", kind, EscapeName(shard.table.name));
  if (shard.table.row_blocks > 1)
    name += fmt::format(".row_block_{}_of_{}", block.row_block, shard.table.row_blocks);
  if (shard.table.column_blocks > 1)
    name += fmt::format(".column_block_{}_of_{}", shard.shard.column_block,
                        shard.table.column_blocks);
  return name;
}

}  // namespace

std::string BlockKey(const EmbeddingShard& shard, const EmbeddingShard::Block& block) {
  return Named("embedding", shard, block);
}

std::string BlockFile(const EmbeddingShard& shard, const EmbeddingShard::Block& block) {
  return Named("table", shard, block);
}

}  // namespace renzan
