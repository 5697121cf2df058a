#pragma once

// An output of a model whose logit is the match of a query and an item (Block::IsMatch):
// what each of the two vectors depends on, and where they go.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace renzan {

// What the vector of one side is computed from, besides parameters.
struct MatchSide {
  bool dense = false;                 // all dense features
  std::vector<std::string> features;  // of ModelOptions::tables and ::sequences, in this order
};

struct MatchOutput {
  std::string block;
  int64_t width = 0;  // of both vectors
  MatchSide query, item;
  std::string where = {};  // GraphBlock::where
};

// What a pass over some samples leaves of an output that is a match: their vectors, [samples,
// width] row by row. Null: not.
struct MatchVectors {
  size_t output = 0;
  int64_t width = 0;
  float *queries = nullptr, *items = nullptr;

  // Those of the samples from `first` on.
  MatchVectors From(int64_t first) const {
    return {output, width, queries == nullptr ? nullptr : queries + first * width,
            items == nullptr ? nullptr : items + first * width};
  }
};

// Throws kConfig if the item's vector depends on a feature of the query: then no item has a vector
// of its own.
void CheckItemsStandAlone(const MatchOutput& match);

}  // namespace renzan
