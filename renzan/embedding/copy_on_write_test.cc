#include "renzan/embedding/copy_on_write.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "renzan/base/philox.h"

namespace renzan {
namespace {

std::vector<float> Values(int64_t rows, int64_t width) {
  std::vector<float> values(static_cast<size_t>(rows * width));
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

CopyRows From(const std::vector<float>& values, int64_t width) {
  return [&values, width](int64_t first, int64_t n, std::byte* out) {
    std::memcpy(out, values.data() + first * width, static_cast<size_t>(n * width) * sizeof(float));
  };
}

// Reads all rows, `rows_at_once` at a time.
std::vector<float> ReadAll(CopyOnWrite& view, int64_t rows, int64_t width, int64_t rows_at_once) {
  std::vector<float> out(static_cast<size_t>(rows * width));
  for (int64_t row = 0; row < rows; row += rows_at_once) {
    const int64_t n = std::min(rows_at_once, rows - row);
    view.ReadNext(std::as_writable_bytes(
        std::span(out).subspan(static_cast<size_t>(row * width), static_cast<size_t>(n * width))));
  }
  return out;
}

TEST(RowSet, HoldsWhatWasAdded) {
  for (const int64_t rows : {1, 63, 64, 65, 1000}) {
    RowSet set(rows);
    std::vector<int32_t> expected;
    for (int64_t row = 0; row < rows; ++row) {
      if (Philox::Draw(5, static_cast<uint64_t>(row))[0] % 3 != 0) continue;
      set.Add(row);
      set.Add(row);
      expected.push_back(static_cast<int32_t>(row));
    }
    EXPECT_EQ(set.Rows(), expected);
    EXPECT_EQ(set.size(), static_cast<int64_t>(expected.size()));
    for (int64_t begin = 0; begin < rows; begin += 7) {
      for (int64_t end = begin; end <= rows; end += 5) {
        bool any = false;
        for (int64_t row = begin; row < end; ++row) any = any || set.Contains(row);
        ASSERT_EQ(set.ContainsAny(begin, end), any) << begin << " to " << end << " of " << rows;
      }
    }
  }
}

TEST(RowSet, AddAllUnites) {
  RowSet a(200), b(200);
  a.Add(3);
  b.Add(3);
  b.Add(199);
  a.AddAll(b);
  EXPECT_EQ(a.Rows(), (std::vector<int32_t>{3, 199}));
}

TEST(CopyOnWrite, IsASnapshotOfItsConstruction) {
  for (const int64_t width : {1, 8, 16, 100, 1024, 3000}) {
    for (const size_t piece : {7, 1000, 4096, 50000}) {
      constexpr int64_t kRows = 700;
      std::vector<float> values = Values(kRows, width);
      const std::vector<float> before = values;
      CopyOnWrite view(From(values, width), kRows, width * 4);
      for (int64_t row = 0; row < kRows; row += 3) {
        view.BeforeWrite(row);
        values[static_cast<size_t>(row * width)] = -1;
      }
      ASSERT_EQ(ReadAll(view, kRows, width, piece), before) << width << ", " << piece;
      EXPECT_GT(view.blocks_copied(), 0);
    }
  }
}

TEST(CopyOnWrite, CopiesEachBlockOnceAndOnlyWhereNeeded) {
  std::vector<float> values = Values(10000, 16);
  RowSet only(10000);
  only.Add(5000);
  CopyOnWrite view(From(values, 16), 10000, 16 * 4, &only);
  for (int64_t row = 0; row < 10000; ++row) view.BeforeWrite(row);
  EXPECT_EQ(view.blocks_copied(), 1);
  std::fill(values.begin(), values.end(), 0.0f);
  std::vector<float> row(16);
  view.ReadNext(std::vector<int32_t>{5000}, std::as_writable_bytes(std::span(row)));
  EXPECT_EQ(row[0], 5000 * 16 + 1);
}

TEST(CopyOnWrite, BlocksAlreadyReadAreNotCopied) {
  std::vector<float> values = Values(4096, 4);
  CopyOnWrite view(From(values, 4), 4096, 4 * 4);
  ReadAll(view, 4096, 4, 4096);
  for (int64_t row = 0; row < 4096; ++row) view.BeforeWrite(row);
  EXPECT_EQ(view.blocks_copied(), 0);
}

// Two threads change random rows in their halves of every block while a third reads.
TEST(CopyOnWrite, ReadsTheSnapshotWhileThreadsWrite) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    constexpr int64_t kRows = 20000, kWidth = 8;
    std::vector<float> values = Values(kRows, kWidth);
    const std::vector<float> before = values;
    RowSet only(kRows);
    for (int64_t row = 0; row < kRows; ++row)
      if (Philox::Draw(seed, static_cast<uint64_t>(row))[1] % 4 == 0) only.Add(row);
    const bool all = seed % 2 == 0;
    CopyOnWrite view(From(values, kWidth), kRows, kWidth * 4, all ? nullptr : &only);
    const auto write = [&](uint64_t parity) {
      for (uint64_t i = 0; i < 30000; ++i) {
        const int64_t row =
            static_cast<int64_t>(Philox::Draw(seed, i, parity)[0] % (kRows / 2) * 2 + parity);
        view.BeforeWrite(row);
        for (int64_t d = 0; d < kWidth; ++d) values[static_cast<size_t>(row * kWidth + d)] += 1;
      }
    };
    std::thread even(write, 0), odd(write, 1);
    std::vector<float> read, expected;
    if (all) {
      read = ReadAll(view, kRows, kWidth, 100);
      expected = before;
    } else {
      const std::vector<int32_t> rows = only.Rows();
      read.resize(rows.size() * kWidth);
      for (size_t i = 0; i < read.size(); i += 1001)
        view.ReadNext(rows, std::as_writable_bytes(std::span(read).subspan(
                                i, std::min<size_t>(1001, read.size() - i))));
      for (const int32_t row : rows)
        expected.insert(expected.end(), before.begin() + row * kWidth,
                        before.begin() + (row + 1) * kWidth);
    }
    even.join();
    odd.join();
    ASSERT_EQ(read, expected) << "seed " << seed;
  }
}

// A store that reads from a disk may fail to; who waits for the copy, or comes later, tries again.
TEST(CopyOnWrite, AFailedCopyLeavesTheBlockToOthers) {
  constexpr int64_t kRows = 10, kWidth = 4;
  const std::vector<float> values = Values(kRows, kWidth);
  int failures = 2;
  CopyOnWrite view(
      [&](int64_t first, int64_t n, std::byte* out) {
        if (failures-- > 0) throw std::runtime_error("no such luck");
        From(values, kWidth)(first, n, out);
      },
      kRows, kWidth * static_cast<int64_t>(sizeof(float)));
  EXPECT_THROW(view.BeforeWrite(3), std::runtime_error);
  EXPECT_THROW(ReadAll(view, kRows, kWidth, kRows), std::runtime_error);
  view.BeforeWrite(3);
  EXPECT_EQ(view.blocks_copied(), 1);
  EXPECT_EQ(ReadAll(view, kRows, kWidth, kRows), values);
}

}  // namespace
}  // namespace renzan
