#pragma once

// The rows of a shard and their optimizer states, wherever they are: in the memory of this process.
// Whoever computes on rows pins them and gets slots (kernels.h); checkpoints copy rows out and in.
//
// All memory is taken at construction, so that a run which does not fit ends there. Values are
// drawn later, when a row is first pinned or its weights are copied: a large model's first step
// does not wait for all of them.
//
// Thread-safe, except that who changes a row must be the only one to use it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "renzan/embedding/row_slots.h"
#include "renzan/tensor/aligned_buffer.h"
#include "renzan/tensor/float_codec.h"

namespace renzan {

struct RowLayout {
  FloatType type = FloatType::kFloat32;
  int64_t dim = 0;          // values of a row
  int64_t state_width = 0;  // floats of its optimizer state

  int64_t row_bytes() const {
    return static_cast<int64_t>(EncodedBytes(type, static_cast<size_t>(dim)));
  }
  int64_t state_bytes() const { return state_width * static_cast<int64_t>(sizeof(float)); }
};

// The values of `row` [dim] when training begins.
using DrawRow = std::function<void(int64_t row, std::span<float> values)>;

class RowStore {
 public:
  // Takes the memory on the pool's threads, if there is one. Throws kOsError if there is not
  // enough. Without `draw`, rows and states begin as zeros; with it, states begin as
  // `initial_state`.
  RowStore(const RowLayout& layout, int64_t rows, DrawRow draw = nullptr, float initial_state = 0,
           ThreadPool* pool = nullptr);
  RowStore(RowStore&&) noexcept;
  ~RowStore();

  const RowLayout& layout() const { return layout_; }
  int64_t num_rows() const { return num_rows_; }

  // Whether Pin() has anything to do.
  bool NeedsPinning() const;
  // Makes rows ready to be used at their slots.
  void Pin(std::span<const int32_t> rows);
  // Of pinned rows.
  const RowSlots& slots() const { return slots_; }

  // Rows [first, first + n), as they are stored: [n, dim] of the type, and [n, state_width] floats.
  void CopyWeights(int64_t first, int64_t n, std::byte* out);
  void CopyState(int64_t first, int64_t n, std::byte* out);

  // Rows from `first` on; weights [n, dim] are rounded to the nearest of the type.
  void SetWeights(int64_t first, std::span<const float> weights);
  void SetState(int64_t first, std::span<const float> state);

 private:
  struct Drawing;

  void Draw(int64_t row);
  void PinRange(int64_t first, int64_t n);

  RowLayout layout_;
  int64_t num_rows_;
  AlignedBuffer weights_, state_;
  RowSlots slots_;
  std::unique_ptr<Drawing> drawing_;
};

}  // namespace renzan
