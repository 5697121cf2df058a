#pragma once

// All rows in the memory of this process, row r in slot r.
//
// All memory is allocated at construction, so that a run that does not fit fails there. Values are
// drawn later, when a row is first pinned or its weights are copied, so that a large model's first
// step does not wait for all of them.

#include "renzan/embedding/row_store.h"
#include "renzan/tensor/aligned_buffer.h"

namespace renzan {

class MemoryRowStore final : public RowStore {
 public:
  // Allocates on the pool's threads, if there is a pool. Throws kOsError if there is not enough
  // memory.
  explicit MemoryRowStore(RowStoreOptions options, ThreadPool* pool = nullptr);
  MemoryRowStore(MemoryRowStore&&) noexcept;
  ~MemoryRowStore() override;

  bool slots_are_rows() const override { return true; }
  // While not all rows have been drawn.
  bool NeedsPinning() const override;
  void Pin(std::span<const int32_t> rows, std::span<int32_t> slots_out) override;
  void Unpin(std::span<const int32_t>) override {}
  void Prefetch(std::span<const int32_t>) override {}

  void CopyWeights(int64_t first, int64_t n, std::byte* out) override;
  void CopyStatePart(int64_t first, int64_t n, StatePart part, std::byte* out) override;
  void SetWeights(int64_t first, std::span<const float> weights) override;
  void SetStatePart(int64_t first, StatePart part, std::span<const float> state) override;

 private:
  struct Drawing;

  void Draw(int64_t row);
  void DrawRange(int64_t first, int64_t n);

  AlignedBuffer weights_, state_;
  std::unique_ptr<Drawing> drawing_;
};

}  // namespace renzan
