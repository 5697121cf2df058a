#pragma once

// The reverse of output_dist: each worker sends the gradients of its samples' pooled rows to the
// holders of the shards that they looked up. The wire codec is applied to every gradient, even one
// that stays on this worker, so that placement cannot change a value. For small replicated shards,
// sums by row are exchanged instead (plan/replicated_gradients.h).

#include <cstdint>
#include <span>
#include <vector>

#include "renzan/base/thread_pool.h"
#include "renzan/comm/wire_range.h"
#include "renzan/embedding/error_feedback.h"
#include "renzan/embedding/reduced_sums.h"
#include "renzan/embedding/row_messages.h"
#include "renzan/embedding/wire_error.h"
#include "renzan/plan/bag_places.h"
#include "renzan/tensor/aligned_buffer.h"
#include "renzan/tensor/blocked_matrix.h"

namespace renzan {

class GradientDist {
 public:
  struct Options {
    RowCodec wire = RowCodec::kFloat32;
    float scale = 1;  // a power of two by which gradients are multiplied for sending
    int64_t error_feedback_rows = 0;  // see ErrorFeedbackSlots
  };
  // The map and the pool must outlive it.
  GradientDist(Communicator& comm, ThreadPool& pool, const ShardMap& map, const Options& options);

  // Call it before the first Write() of a batch. `measure`: whether to fill errors().
  void Begin(const InputDist& ids, bool measure);
  // Writes the gradients of the rows that OutputDist::Read() returned, in the same places. `bags`:
  // the ids given to InputDist::Start(). Thread-safe for different virtual workers.
  void Write(const InputDist& ids, std::span<const IdsView> bags, int virtual_worker,
             std::span<const BagPlace> places, std::span<const BlockedMatrix> gradients);
  void Send(const InputDist& ids);
  void Receive(const InputDist& ids);

  // After Receive(), for this worker's i-th shard: the gradients of its bags [bags, columns].
  const float* of_held(size_t i) const {
    return StaysInPlace(i) ? reinterpret_cast<const float*>(messages_.OfHeld(i, 0))
                           : gradients_[i].data();
  }
  // If not null, use these instead: the summed gradients of its rows [rows, columns].
  const float* sums_of_held(size_t i) const { return reduced_sums_.Of(i); }

  // How many gradients of this worker lost range on a float16 wire since the last call.
  WireRange TakeRange();
  // The errors of the last measured batch, by own virtual worker and table. `lost` excludes what
  // error feedback keeps.
  const std::vector<std::vector<WireError>>& errors() const { return errors_; }

  ErrorFeedback& error_feedback() { return error_feedback_; }

 private:
  // Encodes the gradients of one column block, with error feedback and measurement.
  struct Encoder {
    GradientDist& dist;
    int64_t first_column;                             // of the table
    std::span<const ErrorFeedback::Claim> residuals;  // by bag; empty without error feedback
    WireErrorMeter* meter;                            // or null
    WireRange* range;

    void Encode(int64_t bag, std::span<float> gradient, std::byte* to);
  };
  void WriteColumns(const InputDist& ids, size_t table, int column_block, int virtual_worker,
                    std::span<const BagPlace> places, std::span<const BlockedMatrix> gradients,
                    Encoder encoder);

  // Whether the gradients of a held shard are read from the message in which they were written,
  // which holds all bags, unencoded.
  bool StaysInPlace(size_t held) const { return in_place_ && !reduced_sums_.Has(held); }

  // Decodes the gradients of one virtual worker's bags from their message.
  void Decode(const InputDist& ids, size_t held, int virtual_worker);

  ThreadPool& pool_;
  const ShardMap& map_;
  RowCodec wire_;
  float scale_;
  bool in_place_;
  bool measures_ = false;
  RowMessages messages_;
  ErrorFeedback error_feedback_;
  ReducedSums reduced_sums_;
  // By shard: the ranks that hold it, and its index among each rank's shards.
  struct Holder {
    int rank;
    size_t held;
  };
  std::vector<std::vector<Holder>> holders_;
  std::vector<WireRange> range_;                // by virtual worker assigned to this worker
  std::vector<std::vector<WireError>> errors_;  // by the same and table
  std::vector<AlignedBuffer> gradients_;        // by held shard
};

}  // namespace renzan
