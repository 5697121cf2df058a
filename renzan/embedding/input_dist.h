#pragma once

// input_dist: sends the ids that each worker read for its own samples to the owners of the tables,
// so that each owner has its tables' ids for the whole global batch, in sample order. One batch at
// a time; another object may exchange another batch meanwhile.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "renzan/comm/communicator.h"
#include "renzan/plan/placement.h"

namespace renzan {

// One table's ids for a run of samples; `offsets` is empty when every sample has exactly one.
struct IdsView {
  std::span<const int32_t> values;
  std::span<const int32_t> offsets;
};

// The same, owned, for the whole global batch.
struct GlobalIds {
  std::vector<int32_t> values;
  std::vector<int32_t> offsets;  // [batch + 1], or empty for one-hot

  std::span<const int32_t> Bag(int64_t sample) const {
    if (offsets.empty()) return {values.data() + sample, 1};
    const size_t i = static_cast<size_t>(sample);
    return {values.data() + offsets[i], static_cast<size_t>(offsets[i + 1] - offsets[i])};
  }
};

class InputDist {
 public:
  // owner[t] is the rank that owns table t; samples[r] is the number of samples that rank r reads.
  InputDist(Communicator& comm, std::span<const TableSpec> tables, std::span<const int> owner,
            std::vector<int64_t> samples);

  // Every rank calls these in turn, the same at the same time, and may do something else in
  // between. ids: one view per table, of this rank's samples; their values must stay until
  // Continue() returns.
  void Start(std::span<const IdsView> ids);
  // Where tables are multi-hot, the numbers of ids have to arrive before the ids can.
  void Continue();
  void Finish();

  // After Finish(): the ids of the tables this rank owns, in table order; valid until the next one.
  const std::vector<GlobalIds>& ids() const { return ids_; }

 private:
  bool AnyMultiHot() const;
  void PostCounts();
  void PostIds();
  void Unpack();

  Communicator& comm_;
  std::vector<std::vector<size_t>> tables_of_;  // [world_size]: the tables of each rank, in order
  std::vector<bool> multi_hot_;                 // [tables]
  std::vector<std::string> names_;              // [tables]
  std::vector<int64_t> samples_;
  std::vector<std::vector<int32_t>> counts_;  // [world_size]: lookups per multi-hot table
  std::vector<std::vector<int32_t>> send_, recv_;
  std::vector<std::vector<int32_t>> announced_;  // like counts_, of this worker's samples
  std::vector<IdsView> own_ids_;                 // of the batch in flight
  std::vector<GlobalIds> ids_;
  Exchange exchange_;  // last, so that it ends before the buffers do
};

}  // namespace renzan
