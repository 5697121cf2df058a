#pragma once

// The rows of a shard and their optimizer states, wherever they are stored. Row and slot numbers
// are different things: a row is an index into the shard; a slot is where kernels (kernels.h) find
// a row while it is pinned. Checkpoints copy rows out and in, pinned or not.
//
// Thread-safe, except that while one thread changes a row, no other may use that row.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "renzan/base/thread_pool.h"
#include "renzan/embedding/row_slots.h"
#include "renzan/optim/sparse_optimizers.h"
#include "renzan/tensor/float_codec.h"

namespace renzan {

struct RowLayout {
  FloatType type = FloatType::kFloat32;
  int64_t dim = 0;          // values of a row
  int64_t state_width = 0;  // floats of its optimizer state

  int64_t row_bytes() const {
    return static_cast<int64_t>(EncodedBytes(type, static_cast<size_t>(dim)));
  }
  StatePart whole_state() const { return {0, state_width}; }
  int64_t state_bytes() const { return state_width * static_cast<int64_t>(sizeof(float)); }
};

// Writes the values [dim] that `row` has when training begins.
using DrawRow = std::function<void(int64_t row, std::span<float> values)>;

// What every store is made from.
struct RowStoreOptions {
  RowLayout layout;
  int64_t rows = 0;
  DrawRow draw;             // null: rows and states begin as zeros
  float initial_state = 0;  // with `draw`: what every float of a state begins as
};

class RowStore {
 public:
  virtual ~RowStore() = default;

  const RowLayout& layout() const { return layout_; }
  int64_t num_rows() const { return num_rows_; }

  // Whether every row r is in slot r for good, so that nobody need ask for slots or unpin rows.
  virtual bool slots_are_rows() const = 0;
  // Whether rows must be pinned before they are used. Always true unless slots_are_rows().
  virtual bool NeedsPinning() const = 0;
  // Makes rows usable at their slots until Unpin(). Sets slots_out[i] to the slot of rows[i]; a row
  // may be listed, and pinned, several times. `slots_out` may be empty if slots_are_rows(). Blocks
  // until the rows are in their slots.
  virtual void Pin(std::span<const int32_t> rows, std::span<int32_t> slots_out) = 0;
  // Undoes one Pin() of each of these rows for each time it is listed.
  virtual void Unpin(std::span<const int32_t> rows) = 0;
  // Hints that these rows will be pinned soon. Does not block.
  virtual void Prefetch(std::span<const int32_t> rows) = 0;
  // The slots of pinned rows.
  const RowSlots& slots() const { return slots_; }

  // Copy rows [first, first + n) as they are stored: [n, dim] of the type, and [n, part.width]
  // floats.
  virtual void CopyWeights(int64_t first, int64_t n, std::byte* out) = 0;
  virtual void CopyStatePart(int64_t first, int64_t n, StatePart part, std::byte* out) = 0;

  // Set the rows from `first` on, which nobody has pinned; weights [n, dim] are rounded to the
  // nearest value of the type.
  virtual void SetWeights(int64_t first, std::span<const float> weights) = 0;
  virtual void SetStatePart(int64_t first, StatePart part, std::span<const float> state) = 0;

  // The same for whole states.
  void CopyState(int64_t first, int64_t n, std::byte* out) {
    CopyStatePart(first, n, layout_.whole_state(), out);
  }
  void SetState(int64_t first, std::span<const float> state) {
    SetStatePart(first, layout_.whole_state(), state);
  }

 protected:
  RowStore(const RowLayout& layout, int64_t rows) : layout_(layout), num_rows_(rows) {}
  RowStore(RowStore&&) = default;

  RowLayout layout_;
  int64_t num_rows_;
  RowSlots slots_;
};

// Makes the store of a shard, on the pool's threads if there is a pool. Throws kOsError if there is
// not enough memory.
using MakeRowStore =
    std::function<std::unique_ptr<RowStore>(RowStoreOptions options, ThreadPool* pool)>;

// Keeps rows pinned for as long as it exists, for the thread that needs their slots.
class PinnedRows {
 public:
  // `rows` must outlive it. `scratch` holds the slots, unless these are the rows themselves.
  PinnedRows(RowStore& store, std::span<const int32_t> rows, std::vector<int32_t>* scratch)
      : store_(store), rows_(rows), slots_(rows) {
    if (!store.slots_are_rows()) {
      scratch->resize(rows.size());
      slots_ = *scratch;
      store.Pin(rows, *scratch);
    } else if (store.NeedsPinning()) {
      store.Pin(rows, {});
    }
  }
  ~PinnedRows() {
    if (!store_.slots_are_rows()) store_.Unpin(rows_);
  }
  PinnedRows(const PinnedRows&) = delete;
  PinnedRows& operator=(const PinnedRows&) = delete;

  std::span<const int32_t> slots() const { return slots_; }

 private:
  RowStore& store_;
  std::span<const int32_t> rows_, slots_;
};

}  // namespace renzan
