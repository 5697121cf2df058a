#pragma once

// The distinct items of datasets: the combinations of values that the item's side of a match reads,
// numbered in the order of their first rows. Values are compared as the model reads them, so values
// that share an id (rare, unseen, hashed) are one.

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "renzan/data/batch.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/infer/for_each_slice.h"
#include "renzan/model/match_output.h"

namespace renzan {

// Not thread-safe.
class ItemCandidates {
 public:
  // `schema`: of all datasets.
  ItemCandidates(const MatchSide& item, const DatasetSchema& schema);

  // From now on, IsReplaced() tells samples of a dataset with this manifest in which lookups may
  // read the row for unseen values instead of their own (Vocabulary::TrainUnseen).
  void SkipReplaced(const DatasetManifest& manifest);
  // Whether one of the item's lookups reads that row: then the combination is no item.
  bool IsReplaced(const Batch& batch, int64_t sample) const;

  // Adds the item of a sample unless it is there. `row`: of the sample.
  void Add(const Batch& batch, int64_t sample, int64_t row);

  // The number of a sample's item, which has been added.
  int64_t NumberOf(const Batch& batch, int64_t sample) const;

  int64_t size() const { return static_cast<int64_t>(rows_.size()); }
  // Of memory.
  int64_t bytes() const;
  // The row that an item was first in.
  int64_t row(int64_t item) const { return rows_.at(static_cast<size_t>(item)); }

 private:
  const std::string& KeyOf(const Batch& batch, int64_t sample) const;

  bool dense_;
  std::vector<size_t> categorical_;  // of Batch::categorical
  std::vector<size_t> replaced_;     // of these, those with replaced lookups
  std::unordered_map<std::string, int64_t> numbers_;
  std::vector<int64_t> rows_;
  size_t key_bytes_ = 0;     // of all items
  mutable std::string key_;  // of one sample
};

// Reads all these rows, in order: calls visit(a batch, the row of its first sample).
void ForEachBatch(const ModelRows& rows,
                  FunctionRef<void(const Batch& batch, int64_t first_row)> visit);

}  // namespace renzan
