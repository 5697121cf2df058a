#include "renzan/embedding/memory_row_store.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "renzan/base/error.h"

namespace renzan {
namespace {

constexpr size_t kMostColumns = 4096;  // the configuration's limit for embedding_dim

}  // namespace

// What is needed until all rows have been drawn.
struct MemoryRowStore::Drawing {
  Drawing(DrawRow draw_row, float initial, int64_t rows)
      : draw(std::move(draw_row)),
        initial_state(initial),
        drawn(static_cast<size_t>((rows + 63) / 64)),
        left(rows) {}

  // A thread that sees that a row is drawn also sees its values.
  bool IsDrawn(int64_t row) const {
    const uint64_t word = drawn[static_cast<size_t>(row >> 6)].load(std::memory_order_acquire);
    return (word >> (row & 63) & 1) != 0;
  }

  DrawRow draw;
  float initial_state;
  std::vector<std::atomic<uint64_t>> drawn;  // a bit for each row
  std::atomic<int64_t> left;
  // Held while drawing. Each guards some of the words of `drawn`.
  std::array<std::mutex, 64> mutexes;
};

MemoryRowStore::MemoryRowStore(RowStoreOptions options, ThreadPool* pool)
    : RowStore(options.layout, options.rows),
      weights_((static_cast<size_t>(num_rows_ * layout_.row_bytes()) + sizeof(float) - 1) /
                   sizeof(float),
               pool),
      state_(static_cast<size_t>(num_rows_ * layout_.state_width), pool) {
  CHECK(layout_.dim <= static_cast<int64_t>(kMostColumns));
  slots_ = {.type = layout_.type,
            .dim = layout_.dim,
            .weights = reinterpret_cast<std::byte*>(weights_.data()),
            .state = state_.data()};
  if (options.draw)
    drawing_ = std::make_unique<Drawing>(std::move(options.draw), options.initial_state, num_rows_);
}
MemoryRowStore::MemoryRowStore(MemoryRowStore&&) noexcept = default;
MemoryRowStore::~MemoryRowStore() = default;

bool MemoryRowStore::NeedsPinning() const {
  return drawing_ != nullptr && drawing_->left.load(std::memory_order_acquire) > 0;
}

void MemoryRowStore::Draw(int64_t row) {
  const size_t word = static_cast<size_t>(row >> 6);
  std::lock_guard lock(drawing_->mutexes[word % drawing_->mutexes.size()]);
  if (drawing_->IsDrawn(row)) return;
  const size_t dim = static_cast<size_t>(layout_.dim);
  std::byte* const to = slots_.weights + row * layout_.row_bytes();
  if (layout_.type == FloatType::kFloat32) {
    drawing_->draw(row, {reinterpret_cast<float*>(to), dim});
  } else {
    // No allocation, which could fail while others wait for the row.
    std::array<float, kMostColumns> scratch;
    const auto values = std::span(scratch).first(dim);
    drawing_->draw(row, values);
    Encode(layout_.type, values, to);
  }
  std::fill_n(slots_.state + row * layout_.state_width, layout_.state_width,
              drawing_->initial_state);
  drawing_->drawn[word].fetch_or(uint64_t{1} << (row & 63), std::memory_order_release);
  drawing_->left.fetch_sub(1, std::memory_order_release);
}

void MemoryRowStore::Pin(std::span<const int32_t> rows, std::span<int32_t> slots_out) {
  std::copy_n(rows.begin(), slots_out.size(), slots_out.begin());
  if (!NeedsPinning()) return;
  for (const int32_t row : rows)
    if (!drawing_->IsDrawn(row)) Draw(row);
}

void MemoryRowStore::DrawRange(int64_t first, int64_t n) {
  if (!NeedsPinning()) return;
  for (int64_t row = first; row < first + n; ++row)
    if (!drawing_->IsDrawn(row)) Draw(row);
}

void MemoryRowStore::CopyWeights(int64_t first, int64_t n, std::byte* out) {
  DrawRange(first, n);
  std::copy_n(slots_.weights + first * layout_.row_bytes(), n * layout_.row_bytes(), out);
}

void MemoryRowStore::CopyStatePart(int64_t first, int64_t n, StatePart part, std::byte* out) {
  float* to = reinterpret_cast<float*>(out);
  if (part.width == layout_.state_width && !NeedsPinning()) {
    std::copy_n(slots_.state + first * part.width, n * part.width, to);
    return;
  }
  // A few bytes of states belong to many rows, whose values would take long to draw.
  const bool all_drawn = !NeedsPinning();
  for (int64_t row = first; row < first + n; ++row, to += part.width) {
    if (all_drawn || drawing_->IsDrawn(row)) {
      std::copy_n(slots_.state + row * layout_.state_width + part.first, part.width, to);
    } else {
      std::fill_n(to, part.width, drawing_->initial_state);
    }
  }
}

void MemoryRowStore::SetWeights(int64_t first, std::span<const float> weights) {
  DrawRange(first, std::ssize(weights) / layout_.dim);
  Encode(layout_.type, weights, slots_.weights + first * layout_.row_bytes());
}

void MemoryRowStore::SetStatePart(int64_t first, StatePart part, std::span<const float> state) {
  if (part.width == 0) return;
  const int64_t n = std::ssize(state) / part.width;
  DrawRange(first, n);
  for (int64_t i = 0; i < n; ++i)
    std::copy_n(state.data() + i * part.width, part.width,
                slots_.state + (first + i) * layout_.state_width + part.first);
}

}  // namespace renzan
