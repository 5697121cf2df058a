#include "renzan/plan/table_spec.h"

#include <algorithm>
#include <bit>

namespace renzan {
namespace {

constexpr int64_t kMaxRowBlocks = 1024;

}  // namespace

int64_t TableSpec::bags() const {
  int64_t bags = 0;
  for (const int64_t positions : features) bags += std::max<int64_t>(positions, 1);
  return bags;
}

int DefaultRowBlocks(int64_t num_embeddings, int64_t embedding_dim) {
  constexpr int64_t kBlockBytes = int64_t{128} << 20;
  const int64_t row_bytes = embedding_dim * static_cast<int64_t>(sizeof(float));
  int blocks = 1;
  while (blocks < MaxRowBlocks(num_embeddings) &&
         (num_embeddings + blocks - 1) / blocks * row_bytes > kBlockBytes)
    blocks *= 2;
  return blocks;
}

int MaxRowBlocks(int64_t num_embeddings) {
  return static_cast<int>(std::min<int64_t>(
      kMaxRowBlocks, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(num_embeddings)))));
}

}  // namespace renzan
