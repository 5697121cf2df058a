#pragma once

// How an earlier model reads data whose vocabularies continue its own (Vocabulary::Grow): a value
// that its vocabulary lacks reads the row for unseen values, as after an import with the model's
// vocabulary itself.

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "renzan/data/batch.h"

namespace renzan {

// Thread-safe.
class KnownIds {
 public:
  // `num_ids` [num_categorical]: a feature's ids from there on are of values that are not known.
  explicit KnownIds(std::vector<int64_t> num_ids) : num_ids_(std::move(num_ids)) {}

  // Maps these ids to the row for unseen values. Counts the lookups of the first `counted` samples.
  void MapUnknown(int64_t counted, Batch* batch);

  // The lookups that were counted, and how many of them were mapped.
  int64_t lookups() const { return lookups_.load(); }
  int64_t mapped() const { return mapped_.load(); }

 private:
  const std::vector<int64_t> num_ids_;
  std::atomic<int64_t> lookups_ = 0, mapped_ = 0;
};

}  // namespace renzan
