#include "renzan/quality/gradient_range.h"

#include "renzan/base/error.h"
#include "renzan/comm/gather.h"

namespace renzan {

WireRange MergeRanges(Communicator& comm, const WireRange& mine) {
  WireRange sum;
  for (const WireRange& worker : AllGatherValues(comm, mine)) sum.Add(worker);
  return sum;
}

std::optional<std::string> GradientRangeAdvice(const WireRange& range, float scale) {
  // Clamping any gradient matters; losing a few of the smallest does not.
  constexpr int64_t kPercent = 100;
  const auto advice = [&](int64_t lost, const char* how, const char* what) {
    return fmt::format(
        "comm.backward: fp16: {} of {} gradients of pooled embeddings {}: {} comm.backward_scale "
        "(it is {:.0f}; a new value needs a new run), or use bf16",
        lost, range.values, how, what, scale);
  };
  if (range.overflowed > 0)
    return advice(range.overflowed, "were too large and were clamped", "lower");
  if (range.underflowed * kPercent > range.values)
    return advice(range.underflowed, "were too small and became 0", "raise");
  return std::nullopt;
}

}  // namespace renzan
