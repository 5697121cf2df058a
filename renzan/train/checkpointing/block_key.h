#pragma once

// Under which names the blocks of tables are saved. They are the unit of a checkpoint, whatever the
// plan that wrote or reads it.

#include <string>

#include "renzan/embedding/shard.h"

namespace renzan {

// "embedding.C1", or with several blocks "embedding.C1.row_block_3_of_8.column_block_0_of_2". The
// keys of its tensors begin with it.
std::string BlockKey(const EmbeddingShard& shard, const EmbeddingShard::Block& block);

// "table.C1", "table.C1.row_block_3_of_8": the stem of the file's name.
std::string BlockFile(const EmbeddingShard& shard, const EmbeddingShard::Block& block);

}  // namespace renzan
