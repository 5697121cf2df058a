#include "renzan/data/sample_order.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "renzan/base/error.h"
#include "renzan/base/philox.h"

namespace renzan {
namespace {

// Four rounds of a random function make a Feistel network a strong permutation (Luby, Rackoff).
constexpr int kRounds = 4;

}  // namespace

KeyedPermutation::KeyedPermutation(uint64_t key, uint64_t tweak, int64_t size)
    : key_(key), tweak_(tweak), size_(static_cast<uint64_t>(size)) {
  CHECK(size >= 0);
  // At least one bit on each side, so that every round has something to mix.
  const int bits = std::max(2, static_cast<int>(std::bit_width(std::max<uint64_t>(size_, 1) - 1)));
  left_bits_ = bits / 2;
  right_bits_ = bits - left_bits_;
}

template <size_t n>
void KeyedPermutation::Mix(int round, const Values<n>& half, uint64_t mask, Values<n>* to) const {
  const uint64_t high = (tweak_ << 3) | static_cast<uint64_t>(round);
  Philox::Blocks<n> blocks;
  for (size_t i = 0; i < n; ++i) {
    blocks[0][i] = static_cast<uint32_t>(half.of[i]);
    blocks[1][i] = static_cast<uint32_t>(half.of[i] >> 32);
    blocks[2][i] = static_cast<uint32_t>(high);
    blocks[3][i] = static_cast<uint32_t>(high >> 32);
  }
  Philox::DrawInPlace(key_, &blocks);
  for (size_t i = 0; i < n; ++i)
    to->of[i] ^= ((uint64_t{blocks[0][i]} << 32) | blocks[1][i]) & mask;
}

// The inverse is the same rounds in the opposite order.
template <size_t n, bool kInverse>
void KeyedPermutation::Pass(Values<n>* values) const {
  const uint64_t left_mask = (uint64_t{1} << left_bits_) - 1;
  const uint64_t right_mask = (uint64_t{1} << right_bits_) - 1;
  Values<n> left, right;
  for (size_t i = 0; i < n; ++i) {
    left.of[i] = values->of[i] >> right_bits_;
    right.of[i] = values->of[i] & right_mask;
  }
  for (int i = 0; i < kRounds; ++i) {
    const int round = kInverse ? kRounds - 1 - i : i;
    if (round % 2 == 0)
      Mix(round, right, left_mask, &left);
    else
      Mix(round, left, right_mask, &right);
  }
  for (size_t i = 0; i < n; ++i) values->of[i] = (left.of[i] << right_bits_) | right.of[i];
}

template <bool kInverse>
int64_t KeyedPermutation::Walk(uint64_t value) const {
  Values<1> one = {{value}};
  do {
    Pass<1, kInverse>(&one);
  } while (one.of[0] >= size_);
  return static_cast<int64_t>(one.of[0]);
}

int64_t KeyedPermutation::operator()(int64_t index) const {
  CHECK(index >= 0 && static_cast<uint64_t>(index) < size_);
  return Walk<false>(static_cast<uint64_t>(index));
}

int64_t KeyedPermutation::Inverse(int64_t value) const {
  CHECK(value >= 0 && static_cast<uint64_t>(value) < size_);
  return Walk<true>(static_cast<uint64_t>(value));
}

void KeyedPermutation::Apply(std::span<int64_t> indices) const {
  constexpr size_t kMany = 16;
  size_t at = 0;
  for (; at + kMany <= indices.size(); at += kMany) {
    Values<kMany> values;
    for (size_t i = 0; i < kMany; ++i) values.of[i] = static_cast<uint64_t>(indices[at + i]);
    Pass<kMany, false>(&values);
    for (size_t i = 0; i < kMany; ++i)
      indices[at + i] =
          values.of[i] < size_ ? static_cast<int64_t>(values.of[i]) : Walk<false>(values.of[i]);
  }
  for (; at < indices.size(); ++at) indices[at] = Walk<false>(static_cast<uint64_t>(indices[at]));
}

SampleOrder::SampleOrder(uint64_t seed, int64_t epoch, int64_t begin, int64_t end,
                         ShuffleOptions options)
    : begin_(begin),
      end_(end),
      options_(options),
      row_key_(PhiloxKey(seed, "order/rows", static_cast<uint64_t>(epoch))),
      full_blocks_(options.block_rows > 0 ? (end - begin) / options.block_rows : 0),
      block_order_(PhiloxKey(seed, "order/blocks", static_cast<uint64_t>(epoch)), 0, full_blocks_) {
  CHECK(begin >= 0 && begin <= end && epoch >= 0);
  CHECK(options.block_rows > 0 && options.window_blocks > 0);
}

KeyedPermutation SampleOrder::RowOrder(int64_t window) const {
  const int64_t size = std::min(window_rows(), num_rows() - window * window_rows());
  return KeyedPermutation(row_key_, static_cast<uint64_t>(window), size);
}

int64_t SampleOrder::Row(int64_t position) const {
  CHECK(position >= 0 && position < num_rows());
  if (!options_.enabled) return begin_ + position;
  const int64_t window = position / window_rows();
  const int64_t first = window * window_rows();
  const int64_t mixed = first + RowOrder(window)(position - first);
  const int64_t slot = mixed / options_.block_rows;
  return begin_ + BlockOfSlot(slot) * options_.block_rows + mixed % options_.block_rows;
}

void SampleOrder::AppendRows(int64_t first, int64_t n, std::vector<int64_t>* rows) const {
  CHECK(first >= 0 && n >= 0 && first + n <= num_rows());
  const size_t before = rows->size();
  rows->resize(before + static_cast<size_t>(n));
  const std::span<int64_t> added = std::span(*rows).subspan(before);
  if (!options_.enabled) {
    std::iota(added.begin(), added.end(), begin_ + first);
    return;
  }
  std::vector<int64_t> blocks;  // of a window's slots; -1 where none was computed yet
  for (int64_t at = 0; at < n;) {
    const int64_t window = (first + at) / window_rows();
    const int64_t begin = window * window_rows();
    const int64_t end = std::min(begin + window_rows() - first, n);
    const auto of_window = added.subspan(static_cast<size_t>(at), static_cast<size_t>(end - at));
    std::iota(of_window.begin(), of_window.end(), first + at - begin);
    RowOrder(window).Apply(of_window);
    blocks.assign(static_cast<size_t>(options_.window_blocks), -1);
    for (int64_t& row : of_window) {
      const int64_t slot = row / options_.block_rows;
      int64_t& block = blocks[static_cast<size_t>(slot)];
      if (block < 0) block = BlockOfSlot(window * options_.window_blocks + slot);
      row = begin_ + block * options_.block_rows + row % options_.block_rows;
    }
    at = end;
  }
}

std::pair<int64_t, int64_t> SampleOrder::RowsOfBlock(int64_t block) const {
  const int64_t first = block * options_.block_rows;
  return {begin_ + first, begin_ + std::min(first + options_.block_rows, num_rows())};
}

std::vector<int64_t> SampleOrder::BlocksOfWindow(int64_t window) const {
  std::vector<int64_t> blocks;
  const int64_t first = window * options_.window_blocks;
  for (int64_t slot = first; slot < std::min(first + options_.window_blocks, num_blocks()); ++slot)
    blocks.push_back(options_.enabled ? BlockOfSlot(slot) : slot);
  return blocks;
}

int64_t SampleOrder::WindowOfBlock(int64_t block) const {
  const bool moved = options_.enabled && block < full_blocks_;
  return (moved ? block_order_.Inverse(block) : block) / options_.window_blocks;
}

}  // namespace renzan
