#include "renzan/embedding/row_set.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "renzan/base/error.h"

namespace renzan {

RowSet::RowSet(int64_t num_rows)
    : num_rows_(num_rows), words_(static_cast<size_t>((num_rows + 63) / 64)) {}

void RowSet::Add(int64_t row) {
  // Relaxed: no other data is published through the bits. Reading first avoids most writes, since
  // most rows of a step are already set.
  std::atomic_ref<uint64_t> word(words_[static_cast<size_t>(row >> 6)]);
  const uint64_t bit = uint64_t{1} << (row & 63);
  if ((word.load(std::memory_order_relaxed) & bit) == 0)
    word.fetch_or(bit, std::memory_order_relaxed);
}

void RowSet::AddAll(const RowSet& other) {
  CHECK(other.num_rows_ == num_rows_);
  for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
}

bool RowSet::ContainsAny(int64_t begin, int64_t end) const {
  for (int64_t row = begin; row < end;) {
    const int64_t word_end = std::min(end, (row | 63) + 1);
    const uint64_t from = words_[static_cast<size_t>(row >> 6)] >> (row & 63);
    const int64_t bits = word_end - row;
    if ((bits == 64 ? from : from & ((uint64_t{1} << bits) - 1)) != 0) return true;
    row = word_end;
  }
  return false;
}

int64_t RowSet::size() const {
  int64_t count = 0;
  for (const uint64_t word : words_) count += std::popcount(word);
  return count;
}

int64_t RowSet::SizeOfUnion(const RowSet& other) const {
  CHECK(other.num_rows_ == num_rows_);
  int64_t count = 0;
  for (size_t i = 0; i < words_.size(); ++i) count += std::popcount(words_[i] | other.words_[i]);
  return count;
}

std::vector<int32_t> RowSet::Rows() const {
  std::vector<int32_t> rows;
  rows.reserve(static_cast<size_t>(size()));
  for (size_t i = 0; i < words_.size(); ++i)
    for (uint64_t word = words_[i]; word != 0; word &= word - 1)
      rows.push_back(static_cast<int32_t>(i * 64) + std::countr_zero(word));
  return rows;
}

}  // namespace renzan
