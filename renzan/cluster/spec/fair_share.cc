#include "renzan/cluster/spec/fair_share.h"

#include "renzan/cluster/spec/amounts.h"
#include "renzan/cluster/spec/describe.h"

namespace renzan::cluster::spec {

void DescribeFairShare(ConfigFields& fields, std::string* half_life) {
  fields.Require(!fields.IsEmptySection("fair_share"), "fair_share",
                 "is there, but empty: say after what time use counts half, {half_life: 7d}, or "
                 "leave it out");
  fields.Section(
      "fair_share",
      [&](ConfigFields& section) {
        DescribeDuration(section, "half_life", half_life,
                         "use counts half after this time; 0s: users make no difference");
      },
      "of equal priority, users who have used less of the queue lately go first");
}

std::optional<FairShare> FairShareOf(const std::string& half_life) {
  const TimeMs ms = TryParseMilliseconds(half_life).value_or(0);
  return ms > 0 ? std::optional(FairShare{.half_life = ms}) : std::nullopt;
}

}  // namespace renzan::cluster::spec
