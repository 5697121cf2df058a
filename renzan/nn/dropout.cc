#include "renzan/nn/dropout.h"

#include <algorithm>

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

// Units come in groups of 64, which are 16 counters of 4 words: each 16 units get the same word of
// all counters.
void Drop(uint64_t key, uint32_t threshold, float scale, uint64_t step, uint32_t sample,
          int64_t row, BlockedMatrix* y) {
  uint32_t words[4][kLanes];
  float values[kLanes] = {};
  for (int64_t first = 0; first < y->columns(); first += kLanes) {
    const int64_t word = first / kLanes % 4;
    if (word == 0) DrawLanes(key, step, sample, static_cast<uint32_t>(first / 64) * kLanes, words);
    const int64_t count = std::min<int64_t>(kLanes, y->columns() - first);
    y->GetRow(row, first, values, count);
    for (uint32_t i = 0; i < kLanes; ++i)
      values[i] = words[word][i] < threshold ? 0.0f : values[i] * scale;
    y->SetRow(row, first, values, count);
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
  for (int64_t i = 0; i < y->rows(); ++i) HWY_DYNAMIC_DISPATCH(Drop)
  (key_, threshold_, scale_, static_cast<uint64_t>(position.step),
   static_cast<uint32_t>(position.first_sample + i), i, y);
}

}  // namespace renzan
#endif
