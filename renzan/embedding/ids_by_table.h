#pragma once

// The ids of a batch by table. The bags of a sample in a table are those of its features, in their
// order; a sequence has one for each position, of which those after its last id are empty.
//
// The weights of a table that pools means are divided by their sum in each bag here, so that the
// mean Σ w·row / Σ w is a weighted sum wherever the rows are, and its gradient w·g. If they are all
// 0, they stay 0.

#include <cstdint>
#include <span>
#include <vector>

#include "renzan/plan/table_spec.h"

namespace renzan {

// The ids of a run of samples; `offsets` is empty when every bag has exactly one. `weights` has one
// for each id, or is empty when each is 1.
struct IdsView {
  std::span<const int64_t> values;
  std::span<const int32_t> offsets;
  std::span<const float> weights = {};
};

class IdsByTable {
 public:
  // `features`: the features' ids, one table's features after another. Views their memory, except
  // for tables with several bags, whose ids it copies, and for weights that it divides or makes.
  // Throws kData for a sequence with more ids than positions, and for a weight below 0 of a mean.
  void Assign(std::span<const TableSpec> tables, std::span<const IdsView> features);

  // One for each table, of its bags: those of the first sample, then those of the second.
  std::span<const IdsView> views() const { return views_; }

 private:
  struct Copy {
    std::vector<int64_t> values;
    std::vector<int32_t> offsets;
    std::vector<float> weights;
  };
  static void SetWeights(const TableSpec& table, Copy* copy, IdsView* view);
  static void CopyBags(const TableSpec& table, std::span<const IdsView> features, Copy* copy);

  std::vector<IdsView> views_;
  std::vector<Copy> copies_;  // by table; empty for those with one bag
};

}  // namespace renzan
