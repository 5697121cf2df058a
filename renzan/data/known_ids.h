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
  // Of one feature.
  struct Feature {
    int64_t num_ids = 0;  // ids from there on are of values that are not known
    bool has_unseen_row = false;
  };
  // `features` [num_categorical].
  explicit KnownIds(std::vector<Feature> features) : features_(std::move(features)) {}

  // Maps the ids of unknown values to the row for unseen ones. Counts the lookups of the first
  // `counted` samples.
  void MapUnknown(int64_t counted, Batch* batch);

  // The lookups that were counted, and how many of them read a row for unseen values: those that
  // were mapped, and those of values that the data's own vocabulary lacks, too.
  int64_t lookups() const { return lookups_.load(); }
  int64_t unseen() const { return unseen_.load(); }

 private:
  const std::vector<Feature> features_;
  std::atomic<int64_t> lookups_ = 0, unseen_ = 0;
};

}  // namespace renzan
