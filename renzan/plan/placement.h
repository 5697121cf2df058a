#pragma once

// Which worker owns which embedding table. A pure function of the tables and the number of workers:
// every worker computes the same answer. It never changes a result, only its speed.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace renzan {

enum class Pooling { kSum, kMean };

struct TableSpec {
  std::string name;            // the categorical feature's
  int64_t num_embeddings = 0;  // rows
  int64_t embedding_dim = 0;   // columns
  Pooling pooling = Pooling::kSum;
  bool multi_hot = false;
  double pooling_factor = 1;  // mean lookups per sample, an estimate
};

// Element t of the result is the rank that owns table t. Greedy: the table with most lookup traffic
// first (then the largest) onto the worker with the least traffic (then the fewest bytes, then the
// lowest rank).
std::vector<int> PlaceTableWise(std::span<const TableSpec> tables, int world_size);

}  // namespace renzan
