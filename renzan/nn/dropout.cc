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

constexpr uint32_t kLanes = 16;  // counters whose words are drawn at once
using Words = Philox::Blocks<kLanes>;

// words[w][lane]: word w of Philox::Draw(key, step, sample << 32 | (first + lane)).
HWY_INLINE void DrawLanes(uint64_t key, uint64_t step, uint32_t sample, uint32_t first,
                          Words* words_of_lanes) {
  Words& words = *words_of_lanes;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    words[0][lane] = static_cast<uint32_t>(step);
    words[1][lane] = static_cast<uint32_t>(step >> 32);
    words[2][lane] = first + lane;
    words[3][lane] = sample;
  }
  Philox::DrawInPlace(key, &words);
}

// Units come in groups of 64, which are 16 counters of 4 words: each 16 units get the same word of
// all counters.
void Drop(uint64_t key, uint32_t threshold, float scale, uint64_t step, uint32_t sample,
          int64_t row, BlockedMatrix* y) {
  Words words;
  float values[kLanes] = {};
  for (int64_t first = 0; first < y->columns(); first += kLanes) {
    const int64_t word = first / kLanes % 4;
    if (word == 0) DrawLanes(key, step, sample, static_cast<uint32_t>(first / 64) * kLanes, &words);
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
  for (int64_t i = 0; i < y->rows(); ++i) {
    const int64_t sample =
        position.samples.empty() ? i : int64_t{position.samples[static_cast<size_t>(i)]};
    HWY_DYNAMIC_DISPATCH(Drop)
    (key_, threshold_, scale_, static_cast<uint64_t>(position.step),
     static_cast<uint32_t>(position.first_sample + sample), i, y);
  }
}

}  // namespace renzan
#endif
