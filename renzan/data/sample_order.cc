#include "renzan/data/sample_order.h"

#include <algorithm>
#include <bit>

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

uint64_t KeyedPermutation::Mix(uint64_t half, int round) const {
  const Philox::Block block =
      Philox::Draw(key_, half, (tweak_ << 3) | static_cast<uint64_t>(round));
  return (uint64_t{block[0]} << 32) | block[1];
}

// Its inverse is the same rounds in the opposite order.
template <bool kInverse>
int64_t KeyedPermutation::Walk(int64_t index) const {
  CHECK(index >= 0 && static_cast<uint64_t>(index) < size_);
  const uint64_t left_mask = (uint64_t{1} << left_bits_) - 1;
  const uint64_t right_mask = (uint64_t{1} << right_bits_) - 1;
  uint64_t value = static_cast<uint64_t>(index);
  do {
    uint64_t left = value >> right_bits_, right = value & right_mask;
    for (int i = 0; i < kRounds; ++i) {
      const int round = kInverse ? kRounds - 1 - i : i;
      if (round % 2 == 0)
        left ^= Mix(right, round) & left_mask;
      else
        right ^= Mix(left, round) & right_mask;
    }
    value = (left << right_bits_) | right;
  } while (value >= size_);
  return static_cast<int64_t>(value);
}

int64_t KeyedPermutation::operator()(int64_t index) const { return Walk<false>(index); }
int64_t KeyedPermutation::Inverse(int64_t index) const { return Walk<true>(index); }

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

int64_t SampleOrder::Row(int64_t position) const {
  CHECK(position >= 0 && position < num_rows());
  if (!options_.enabled) return begin_ + position;
  // Slot s of the permuted blocks holds block block_order_(s); the short one stays last.
  const int64_t window = position / window_rows();
  const int64_t window_begin = window * window_rows();
  const int64_t size = std::min(window_rows(), num_rows() - window_begin);
  const KeyedPermutation row_order(row_key_, static_cast<uint64_t>(window), size);
  const int64_t mixed = window_begin + row_order(position - window_begin);
  const int64_t slot = mixed / options_.block_rows;
  const int64_t block = slot < full_blocks_ ? block_order_(slot) : slot;
  return begin_ + block * options_.block_rows + mixed % options_.block_rows;
}

std::pair<int64_t, int64_t> SampleOrder::RowsOfBlock(int64_t block) const {
  const int64_t first = block * options_.block_rows;
  return {begin_ + first, begin_ + std::min(first + options_.block_rows, num_rows())};
}

std::vector<int64_t> SampleOrder::BlocksOfWindow(int64_t window) const {
  std::vector<int64_t> blocks;
  const int64_t first = window * options_.window_blocks;
  for (int64_t slot = first; slot < std::min(first + options_.window_blocks, num_blocks()); ++slot)
    blocks.push_back(options_.enabled && slot < full_blocks_ ? block_order_(slot) : slot);
  return blocks;
}

int64_t SampleOrder::WindowOfBlock(int64_t block) const {
  const bool moved = options_.enabled && block < full_blocks_;
  return (moved ? block_order_.Inverse(block) : block) / options_.window_blocks;
}

}  // namespace renzan
