#include "renzan/embedding/memory_row_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "renzan/embedding/testing.h"

namespace renzan {
namespace {

constexpr int64_t kStored = 1000, kColumns = 6;

// Value c of row r is 10·r + c, which all types of at most 1000 rows hold but for their rounding.
float ValueAt(int64_t row, int64_t column) { return static_cast<float>(10 * row + column); }

struct Counted {
  std::atomic<int> rows{0};
  DrawRow Draw() {
    return [this](int64_t row, std::span<float> values) {
      ++rows;
      for (size_t c = 0; c < values.size(); ++c) values[c] = ValueAt(row, static_cast<int64_t>(c));
    };
  }
};

std::vector<float> AllValues() {
  std::vector<float> values;
  for (int64_t row = 0; row < kStored; ++row)
    for (int64_t c = 0; c < kColumns; ++c) values.push_back(ValueAt(row, c));
  return values;
}

TEST(MemoryRowStore, DrawsARowWhenItIsFirstPinned) {
  Counted drawn;
  MemoryRowStore store({{FloatType::kFloat32, kColumns, 2}, kStored, drawn.Draw(), 0.25f});
  EXPECT_EQ(drawn.rows, 0);
  EXPECT_TRUE(store.NeedsPinning());
  store.Pin(std::vector<int32_t>{3, 999, 3}, {});
  EXPECT_EQ(drawn.rows, 2);
  store.Pin(std::vector<int32_t>{4, 3}, {});
  EXPECT_EQ(drawn.rows, 3);
  const RowSlots& slots = store.slots();
  for (const int64_t row : {3, 4, 999}) {
    const float* weights = reinterpret_cast<const float*>(slots.weights) + row * kColumns;
    for (int64_t c = 0; c < kColumns; ++c) EXPECT_EQ(weights[c], ValueAt(row, c));
    EXPECT_EQ(slots.state[2 * row + 1], 0.25f);
  }
  EXPECT_EQ(WeightsOf(store), AllValues());
  EXPECT_EQ(StateOf(store), std::vector<float>(2 * kStored, 0.25f));
  EXPECT_EQ(drawn.rows, kStored);
  EXPECT_FALSE(store.NeedsPinning());
}

TEST(MemoryRowStore, WhatIsSetStays) {
  for (const FloatType type : {FloatType::kFloat32, FloatType::kFloat16, FloatType::kBFloat16}) {
    Counted drawn;
    MemoryRowStore store({{type, kColumns, 1}, kStored, drawn.Draw()});
    std::vector<float> expected = AllValues();
    RoundTrip(type, expected);
    const std::vector<float> rows = {1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6};
    store.SetWeights(70, rows);
    store.SetState(71, std::vector<float>{9, 8});
    std::copy(rows.begin(), rows.end(), expected.begin() + 70 * kColumns);
    EXPECT_EQ(WeightsOf(store), expected) << Name(type);
    const std::vector<float> state = StateOf(store);
    EXPECT_EQ(state[70], 0);
    EXPECT_EQ(state[71], 9);
    EXPECT_EQ(state[72], 8);
  }
}

TEST(MemoryRowStore, BeginsAsZerosWithoutInitialValues) {
  MemoryRowStore store({{FloatType::kFloat32, kColumns, 1}, kStored});
  EXPECT_EQ(WeightsOf(store), std::vector<float>(kStored * kColumns));
  EXPECT_EQ(StateOf(store), std::vector<float>(kStored));
}

// Two threads pin all rows and change some of them once, while a third copies rows that stay as
// they are.
TEST(MemoryRowStore, ThreadsDrawEachRowOnce) {
  constexpr int32_t kUnchanged = 300;
  for (int round = 0; round < 20; ++round) {
    Counted drawn;
    MemoryRowStore store({{FloatType::kFloat32, kColumns, 1}, kStored, drawn.Draw(), 0.5f});
    const auto change = [&](int32_t parity) {
      for (int32_t row = parity; row < kStored; row += 2) {
        store.Pin(std::vector<int32_t>{row, row ^ 1}, {});
        if (row >= kUnchanged)
          reinterpret_cast<float*>(store.slots().weights)[row * kColumns] += 0.5f;
      }
    };
    std::vector<float> expected = AllValues();
    std::vector<float> copy(kUnchanged * kColumns), states(kUnchanged);
    std::thread even(change, 0), odd(change, 1);
    for (int i = 0; i < 10; ++i) {
      store.CopyState(0, kUnchanged, std::as_writable_bytes(std::span(states)).data());
      store.CopyWeights(0, kUnchanged, std::as_writable_bytes(std::span(copy)).data());
      EXPECT_TRUE(std::equal(copy.begin(), copy.end(), expected.begin()));
      EXPECT_EQ(states, std::vector<float>(kUnchanged, 0.5f));
    }
    even.join();
    odd.join();
    for (int64_t row = kUnchanged; row < kStored; ++row)
      expected[static_cast<size_t>(row * kColumns)] += 0.5f;
    EXPECT_EQ(WeightsOf(store), expected);
    EXPECT_EQ(drawn.rows, kStored);
  }
}

TEST(MemoryRowStore, StatesAreKnownBeforeRowsAreDrawn) {
  Counted drawn;
  MemoryRowStore store({{FloatType::kFloat32, kColumns, 2}, kStored, drawn.Draw(), 0.5f});
  store.Pin(std::vector<int32_t>{7}, {});
  store.slots().state[2 * 7] = 3;
  std::vector<float> expected(2 * kStored, 0.5f);
  expected[2 * 7] = 3;
  EXPECT_EQ(StateOf(store), expected);
  EXPECT_EQ(drawn.rows, 1);
}

}  // namespace
}  // namespace renzan
