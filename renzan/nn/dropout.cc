#include "renzan/nn/dropout.h"

#include "renzan/base/philox.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "renzan/nn/dropout.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace renzan {
namespace HWY_NAMESPACE {

// Philox is evaluated for this many counters at once, so that the compiler vectorises it.
constexpr uint32_t kLanes = 16;

// words[w][lane] = word w of Philox::Draw(key, step, sample << 32 | (first + lane)).
HWY_INLINE void DrawLanes(uint64_t key, uint64_t step, uint32_t sample, uint32_t first,
                          uint32_t words[4][kLanes]) {
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    words[0][lane] = static_cast<uint32_t>(step);
    words[1][lane] = static_cast<uint32_t>(step >> 32);
    words[2][lane] = first + lane;
    words[3][lane] = sample;
  }
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const uint64_t p0 = uint64_t{0xD2511F53} * words[0][lane];
      const uint64_t p1 = uint64_t{0xCD9E8D57} * words[2][lane];
      words[0][lane] = static_cast<uint32_t>(p1 >> 32) ^ words[1][lane] ^ k0;
      words[1][lane] = static_cast<uint32_t>(p1);
      words[2][lane] = static_cast<uint32_t>(p0 >> 32) ^ words[3][lane] ^ k1;
      words[3][lane] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
}

// Units come in groups of 64, which are 16 counters of 4 words: each block of 16 units gets the
// same word of all counters. y is the sample's row in the first block.
void Drop(uint64_t key, uint32_t threshold, float scale, uint64_t step, uint32_t sample,
          int64_t blocks, int64_t block_stride, float* y) {
  uint32_t words[4][kLanes];
  for (int64_t block = 0; block < blocks; ++block, y += block_stride) {
    const int64_t word = block % 4;
    if (word == 0) DrawLanes(key, step, sample, static_cast<uint32_t>(block / 4) * kLanes, words);
    for (uint32_t i = 0; i < kLanes; ++i) y[i] = words[word][i] < threshold ? 0.0f : y[i] * scale;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace renzan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace renzan {

HWY_EXPORT(Drop);

Dropout::Dropout(const DropoutOptions& options, const std::string& layer)
    : key_(PhiloxKey(options.seed, ("dropout/" + layer).c_str())),
      threshold_(static_cast<uint32_t>(options.rate * 0x1.0p32)),
      scale_(static_cast<float>(1 / (1 - options.rate))) {}

void Dropout::Apply(const TrainingPosition& position, BlockedMatrix* y) const {
  static_assert(BlockedMatrix::kBlock == 16);
  for (int64_t i = 0; i < y->rows(); ++i) HWY_DYNAMIC_DISPATCH(Drop)
  (key_, threshold_, scale_, static_cast<uint64_t>(position.step),
   static_cast<uint32_t>(position.first_sample + i), y->num_blocks(), y->block_stride(),
   y->block(0) + i * BlockedMatrix::kBlock);
}

}  // namespace renzan
#endif
