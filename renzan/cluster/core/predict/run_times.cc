#include "renzan/cluster/core/predict/run_times.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "renzan/base/error.h"

namespace renzan::cluster {
namespace {

struct Kind {
  std::string key;
  // The factor by which each ended job reduces the weight of earlier ones.
  float decay;
  // The number of jobs that the next more general kind counts as.
  float smoothing;
};

std::string Key(int kind, std::initializer_list<std::string_view> values) {
  std::string key = std::to_string(kind);
  // Lengths are included, so that no two lists of values have the same key.
  for (const std::string_view value : values) key += fmt::format(" {}:{}", value.size(), value);
  return key;
}

// What runs of the same program share: their names often end in a number, a date or a hash.
std::string_view ProgramOf(std::string_view name) {
  return name.substr(0, name.find_first_of("0123456789"));
}

// From general to specific. Constants: chosen on the first half of the Philly trace.
std::vector<Kind> KindsOf(const JobTraits& traits) {
  const std::string size =
      std::to_string(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(traits.size, 1))));
  const std::string_view program = ProgramOf(traits.name);
  std::vector<Kind> kinds = {{Key(0, {}), 0.999F, 0},
                             {Key(1, {size}), 0.999F, 5},
                             {Key(2, {size, traits.queue}), 0.99F, 20},
                             {Key(3, {size, traits.queue, traits.user}), 0.99F, 20}};
  if (!program.empty())
    kinds.push_back({Key(4, {size, traits.queue, traits.user, program}), 0.99F, 10});
  // The last few: users repeat what they have just run.
  kinds.push_back({Key(5, {size, traits.queue, traits.user, program}), 0.8F, 5});
  return kinds;
}

int BinOf(TimeMs ran, int bins) {
  const double seconds = static_cast<double>(std::max<TimeMs>(ran, kSecond)) / kSecond;
  return std::min(static_cast<int>(2 * std::log2(seconds)), bins - 1);
}

// Where bin `at` begins; fractions interpolate.
double EdgeMs(double at) { return kSecond * std::exp2(at / 2); }

double Log(TimeMs time) { return std::log2(static_cast<double>(std::max<TimeMs>(time, 1))); }

// The share of jobs that have ended by then, linear in the logarithm between quantiles. Only for
// times below the last quantile.
double ShareEndedBy(const RunTimeQuantiles& quantiles, TimeMs time) {
  const size_t next = static_cast<size_t>(
      std::upper_bound(quantiles.begin(), quantiles.end(), time) - quantiles.begin());
  if (next == 0) return 0;
  const double from = Log(quantiles[next - 1]), to = Log(quantiles[next]);
  const double part = (Log(time) - from) / (to - from);
  return kQuantiles[next - 1] + part * (kQuantiles[next] - kQuantiles[next - 1]);
}

}  // namespace

void RunTimes::Add(const JobTraits& traits, TimeMs ran) {
  const int bin = BinOf(ran, kBins);
  for (const Kind& kind : KindsOf(traits))
    for (Kinds* kinds : {&known_, &next_}) {
      Histogram& histogram = (*kinds)[kind.key];
      for (float& count : histogram.count) count *= kind.decay;
      histogram.total = histogram.total * kind.decay + 1;
      ++histogram.count[bin];
    }
  if (++added_ % kGeneration == 0) {
    known_ = std::move(next_);
    next_.clear();
  }
}

RunTimeQuantiles RunTimes::Predict(const JobTraits& traits) const {
  std::array<float, kBins> shares{};
  for (const Kind& kind : KindsOf(traits)) {
    const bool all_jobs = kind.smoothing == 0;
    const auto at = known_.find(kind.key);
    if (at == known_.end() || (all_jobs && at->second.total < kLeastJobs)) {
      if (all_jobs) return {};
      continue;
    }
    const Histogram& histogram = at->second;
    for (int bin = 0; bin < kBins; ++bin)
      shares[bin] = (histogram.count[bin] + kind.smoothing * shares[bin]) /
                    (histogram.total + kind.smoothing);
  }
  RunTimeQuantiles quantiles;
  float below = 0;
  int bin = 0;
  for (size_t i = 0; i < quantiles.size(); ++i) {
    while (bin < kBins - 1 && below + shares[bin] < kQuantiles[i]) below += shares[bin++];
    const float inside =
        shares[bin] > 0 ? std::clamp((kQuantiles[i] - below) / shares[bin], 0.0F, 1.0F) : 0;
    quantiles[i] = std::llround(EdgeMs(bin + inside));
  }
  return quantiles;
}

double ShareEnded(const RunTimeQuantiles& quantiles, TimeMs ran) {
  if (ran < quantiles.back()) return ShareEndedBy(quantiles, ran);
  return 1 - (1 - kQuantiles.back()) * static_cast<double>(quantiles.back()) /
                 static_cast<double>(std::max<TimeMs>(ran, 1));
}

TimeMs RemainingQuantile(const RunTimeQuantiles& quantiles, TimeMs ran, double share) {
  if (ran >= quantiles.back())
    return std::llround(static_cast<double>(std::max(ran, kMinute)) * share / (1 - share));
  const double last = kQuantiles.back(), ended = ShareEndedBy(quantiles, ran);
  const double until = ended + share * (1 - ended);
  double total;
  if (until >= last) {
    total = static_cast<double>(quantiles.back()) * (1 - last) / (1 - until);
  } else {
    size_t next = 1;
    while (kQuantiles[next] < until) ++next;
    const double part = (until - kQuantiles[next - 1]) / (kQuantiles[next] - kQuantiles[next - 1]);
    const double from = Log(quantiles[next - 1]), to = Log(quantiles[next]);
    total = std::exp2(from + part * (to - from));
  }
  return std::max<TimeMs>(std::llround(total) - ran, 1);
}

}  // namespace renzan::cluster
