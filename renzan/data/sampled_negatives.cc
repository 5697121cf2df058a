#include "renzan/data/sampled_negatives.h"

#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/philox.h"

namespace renzan {
namespace {

__extension__ using WideProduct = unsigned __int128;

// A negative takes two of the four words of a draw.
constexpr uint64_t kPerDraw = 2;

// Uniform in [0, n), up to a bias of n / 2^64.
int64_t IdBelow(int64_t n, uint32_t high, uint32_t low) {
  const uint64_t word = uint64_t{high} << 32 | low;
  return static_cast<int64_t>((WideProduct{word} * static_cast<uint64_t>(n)) >> 64);
}

void DrawFor(const NegativesOptions& options, uint64_t key, int64_t step, int64_t first_sample,
             const FeatureIds& own, FeatureIds* negatives) {
  CHECK(own.one_hot());
  const size_t samples = own.values.size(), count = static_cast<size_t>(options.count);
  negatives->values.resize(samples * count);
  negatives->offsets.resize(samples + 1);
  for (size_t i = 0; i < samples; ++i) {
    const int64_t id = own.values[i];
    // The own id is left out: those behind it move down by one.
    const bool left_out = id >= options.ids_begin && id < options.ids_end;
    const int64_t n = options.ids_end - options.ids_begin - (left_out ? 1 : 0);
    const uint64_t sample = static_cast<uint64_t>(first_sample) + i;
    Philox::Block words{};
    for (size_t k = 0; k < count; ++k) {
      if (k % kPerDraw == 0)
        words = Philox::Draw(key, sample << 32 | k / kPerDraw, static_cast<uint64_t>(step));
      const size_t word = 2 * (k % kPerDraw);
      int64_t drawn = options.ids_begin + IdBelow(n, words[word], words[word + 1]);
      if (left_out && drawn >= id) ++drawn;
      negatives->values[i * count + k] = drawn;
    }
    negatives->offsets[i + 1] = static_cast<int32_t>((i + 1) * count);
  }
}

}  // namespace

SampledNegatives::SampledNegatives(uint64_t seed, std::vector<NegativesOptions> features)
    : features_(std::move(features)) {
  for (const NegativesOptions& feature : features_) {
    CHECK(feature.count > 0 && feature.ids_end - feature.ids_begin >= 2);
    keys_.push_back(PhiloxKey(seed, ("negatives/" + feature.name).c_str()));
  }
}

void SampledNegatives::Draw(int64_t step, int64_t first_sample, Batch* batch) const {
  batch->negatives.resize(features_.size());
  for (size_t f = 0; f < features_.size(); ++f)
    DrawFor(features_[f], keys_[f], step, first_sample, batch->categorical[features_[f].feature],
            &batch->negatives[f]);
}

}  // namespace renzan
