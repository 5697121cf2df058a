#include "renzan/cluster/core/order/gittins.h"

#include <algorithm>
#include <cmath>

namespace renzan::cluster {
namespace {

// The mean of run times between two quantiles, which are assumed uniform in the logarithm.
double MeanBetween(TimeMs from, TimeMs to) {
  const auto low = static_cast<double>(from), high = static_cast<double>(to);
  return from > 0 && to > from ? (high - low) / std::log(high / low) : high;
}

// 1 / the index of a job that has just had `service`, when the fraction `ended` of its kind has
// ended; `next` is the next quantile.
double InverseIndex(const RunTimeQuantiles& quantiles, size_t next, double ended, TimeMs service) {
  const auto had = static_cast<double>(service);
  double best = HUGE_VAL, used = 0, from = ended;
  TimeMs low = service;
  for (size_t i = next; i < quantiles.size(); ++i) {
    const double to = kQuantiles[i];
    used += (to - from) * (MeanBetween(low, quantiles[i]) - had);
    const double by_others = (1 - to) * (static_cast<double>(quantiles[i]) - had);
    best = std::min(best, (used + by_others) / (to - ended));
    from = to;
    low = quantiles[i];
  }
  return best;
}

}  // namespace

TimeMs GittinsService(const RunTimeQuantiles& quantiles, TimeMs service) {
  if (quantiles.back() == 0) return service;
  // Evaluated at the beginning and at each quantile, where the density falls. Beyond the last one
  // nothing is known.
  double highest = InverseIndex(quantiles, 0, 0, 0);
  for (size_t i = 0; i + 1 < quantiles.size() && quantiles[i] <= service; ++i)
    highest = std::max(highest, InverseIndex(quantiles, i + 1, kQuantiles[i], quantiles[i]));
  return std::max(service, static_cast<TimeMs>(std::llround(highest)));
}

}  // namespace renzan::cluster
