#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/philox.h"
#include "renzan/capi/guard.h"
#include "renzan/data/sample_order.h"

using namespace renzan;
using namespace renzan::capi;

uint64_t renzan_key(uint64_t seed, const char* meaning, uint64_t index) {
  return PhiloxKey(seed, meaning == nullptr ? "" : meaning, index);
}

void renzan_philox(uint64_t key, uint64_t counter_low, uint64_t counter_high, uint32_t out[4]) {
  const Philox::Block block = Philox::Draw(key, counter_low, counter_high);
  for (size_t i = 0; i < block.size(); ++i) out[i] = block[i];
}

renzan_status renzan_sample_order(uint64_t seed, int64_t epoch, int64_t num_samples, int64_t begin,
                                  int64_t end, int64_t* out) {
  return Guard([&] {
    if (epoch < 0) Fail(ErrorCode::kUsage, "epoch {} is negative", epoch);
    if (num_samples < 0 || begin < 0 || begin > end || end > num_samples)
      Fail(ErrorCode::kUsage, "there are no positions [{}, {}) among {}", begin, end,
           Counted(num_samples, "sample"));
    if (end > begin) NeedsArgument(out, "out");
    const KeyedPermutation order(PhiloxKey(seed, "order", static_cast<uint64_t>(epoch)), 0,
                                 num_samples);
    for (int64_t i = begin; i < end; ++i) out[i - begin] = order(i);
  });
}
