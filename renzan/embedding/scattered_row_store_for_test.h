#pragma once

// A store whose slots are not its rows, for testing code that must keep the two apart. Pinning a
// row moves it from the store behind this one to a slot, a different one each time; it returns when
// its last pin is gone. Free slots hold NaN.

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/embedding/memory_row_store.h"

namespace renzan {

class ScatteredRowStore final : public RowStore {
 public:
  explicit ScatteredRowStore(RowStoreOptions options, ThreadPool* pool)
      : RowStore(options.layout, options.rows),
        behind_(std::move(options), pool),
        at_(static_cast<size_t>(num_rows_)),
        weights_(static_cast<size_t>(num_rows_ * layout_.row_bytes()), std::byte{0xff}),
        state_(static_cast<size_t>(num_rows_ * layout_.state_width), kNone) {
    slots_ = {.type = layout_.type,
              .dim = layout_.dim,
              .weights = weights_.data(),
              .state = state_.data()};
    free_.resize(at_.size());
    std::iota(free_.begin(), free_.end(), 0);
    std::reverse(free_.begin(), free_.begin() + std::ssize(free_) / 2);
  }

  bool slots_are_rows() const override { return false; }
  bool NeedsPinning() const override { return true; }
  void Prefetch(std::span<const int32_t>) override {}

  void Pin(std::span<const int32_t> rows, std::span<int32_t> slots_out) override {
    CHECK(rows.size() == slots_out.size());
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < rows.size(); ++i) {
      Place& place = PlaceOf(rows[i]);
      if (place.pins++ == 0) Bring(rows[i], &place);
      slots_out[i] = place.slot;
    }
  }

  void Unpin(std::span<const int32_t> rows) override {
    std::lock_guard lock(mutex_);
    for (const int32_t row : rows) {
      Place& place = PlaceOf(row);
      CHECK(place.pins > 0);
      if (--place.pins == 0) Return(row, place);
    }
  }

  void CopyWeights(int64_t first, int64_t n, std::byte* out) override {
    std::lock_guard lock(mutex_);
    for (int64_t row = first; row < first + n; ++row, out += layout_.row_bytes()) {
      const Place& place = PlaceOf(row);
      if (place.pins == 0) {
        behind_.CopyWeights(row, 1, out);
      } else {
        std::copy_n(WeightsAt(place.slot), layout_.row_bytes(), out);
      }
    }
  }
  void CopyStatePart(int64_t first, int64_t n, StatePart part, std::byte* out) override {
    std::lock_guard lock(mutex_);
    float* to = reinterpret_cast<float*>(out);
    for (int64_t row = first; row < first + n; ++row, to += part.width) {
      const Place& place = PlaceOf(row);
      if (place.pins == 0) {
        behind_.CopyStatePart(row, 1, part, reinterpret_cast<std::byte*>(to));
      } else {
        std::copy_n(StateAt(place.slot) + part.first, part.width, to);
      }
    }
  }
  // Only for rows that are not pinned.
  void SetWeights(int64_t first, std::span<const float> weights) override {
    std::lock_guard lock(mutex_);
    CheckUnpinned(first, std::ssize(weights) / layout_.dim);
    behind_.SetWeights(first, weights);
  }
  void SetStatePart(int64_t first, StatePart part, std::span<const float> state) override {
    if (part.width == 0) return;
    std::lock_guard lock(mutex_);
    CheckUnpinned(first, std::ssize(state) / part.width);
    behind_.SetStatePart(first, part, state);
  }

  // How many rows are pinned.
  int64_t pinned() const { return num_rows_ - std::ssize(free_); }

 private:
  static constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  struct Place {
    int32_t slot = -1;
    int pins = 0;
  };

  Place& PlaceOf(int64_t row) { return at_[static_cast<size_t>(row)]; }
  std::byte* WeightsAt(int32_t slot) { return weights_.data() + slot * layout_.row_bytes(); }
  float* StateAt(int32_t slot) { return state_.data() + slot * layout_.state_width; }

  void CheckUnpinned(int64_t first, int64_t n) {
    for (int64_t row = first; row < first + n; ++row) CHECK(PlaceOf(row).pins == 0);
  }
  void Bring(int32_t row, Place* place) {
    // The slot that has been free longest.
    place->slot = free_.front();
    free_.erase(free_.begin());
    behind_.CopyWeights(row, 1, WeightsAt(place->slot));
    behind_.CopyState(row, 1, reinterpret_cast<std::byte*>(StateAt(place->slot)));
  }
  void Return(int32_t row, const Place& place) {
    std::vector<float> weights(static_cast<size_t>(layout_.dim));
    Decode(layout_.type, WeightsAt(place.slot), weights);
    behind_.SetWeights(row, weights);
    behind_.SetState(row, {StateAt(place.slot), static_cast<size_t>(layout_.state_width)});
    std::fill_n(WeightsAt(place.slot), layout_.row_bytes(), std::byte{0xff});
    std::fill_n(StateAt(place.slot), layout_.state_width, kNone);
    free_.push_back(place.slot);
  }

  MemoryRowStore behind_;
  std::vector<Place> at_;  // by row
  std::vector<std::byte> weights_;
  std::vector<float> state_;
  std::vector<int32_t> free_;  // slots
  std::mutex mutex_;
};

}  // namespace renzan
