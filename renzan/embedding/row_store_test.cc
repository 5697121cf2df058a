#include "renzan/embedding/row_store.h"

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

TEST(RowStore, DrawsARowWhenItIsFirstPinned) {
  Counted drawn;
  RowStore store({FloatType::kFloat32, kColumns, 2}, kStored, drawn.Draw(), 0.25f);
  EXPECT_EQ(drawn.rows, 0);
  EXPECT_TRUE(store.NeedsPinning());
  store.Pin(std::vector<int32_t>{3, 999, 3});
  EXPECT_EQ(drawn.rows, 2);
  store.Pin(std::vector<int32_t>{4, 3});
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

TEST(RowStore, WhatIsSetStays) {
  for (const FloatType type : {FloatType::kFloat32, FloatType::kFloat16, FloatType::kBFloat16}) {
    Counted drawn;
    RowStore store({type, kColumns, 1}, kStored, drawn.Draw());
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

TEST(RowStore, BeginsAsZerosWithoutInitialValues) {
  RowStore store({FloatType::kFloat32, kColumns, 1}, kStored);
  EXPECT_EQ(WeightsOf(store), std::vector<float>(kStored * kColumns));
  EXPECT_EQ(StateOf(store), std::vector<float>(kStored));
}

// Every thread changes its own rows once while another copies all.
TEST(RowStore, ThreadsDrawEachRowOnce) {
  for (int round = 0; round < 20; ++round) {
    Counted drawn;
    RowStore store({FloatType::kFloat32, kColumns, 1}, kStored, drawn.Draw());
    std::vector<float> copy(2 * kColumns);
    const auto change = [&](int32_t parity) {
      for (int32_t row = parity; row < kStored - 2; row += 2) {
        store.Pin(std::vector<int32_t>{row, row ^ 1});
        reinterpret_cast<float*>(store.slots().weights)[row * kColumns] += 0.5f;
      }
    };
    std::thread even(change, 0), odd(change, 1);
    for (int i = 0; i < 100; ++i)
      store.CopyWeights(kStored - 2, 2, std::as_writable_bytes(std::span(copy)).data());
    even.join();
    odd.join();
    std::vector<float> expected = AllValues();
    for (int64_t row = 0; row < kStored - 2; ++row)
      expected[static_cast<size_t>(row * kColumns)] += 0.5f;
    EXPECT_EQ(WeightsOf(store), expected);
    EXPECT_EQ(drawn.rows, kStored);
  }
}

}  // namespace
}  // namespace renzan
