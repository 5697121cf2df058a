#include "renzan/config/elastic_config.h"

#include "renzan/base/duration.h"
#include "renzan/config/decides.h"

namespace renzan {

double ElasticConfig::grow_after_seconds() const { return ParseDuration(grow_after).value_or(0); }

void ElasticConfig::Describe(ConfigFields& fields) {
  fields.Tag(Decides::kRun);
  fields.Range("min", &min, 0, 1024,
               "fewest workers to continue with when some die; 0: as many as at the start");
  fields.Range("max", &max, 0, 1024, "workers to start when `workers` is 0");
  fields.Require(max == 0 || min <= max, "min", "must be at most max");
  fields.Range("max_restarts", &max_restarts, 0, 1000000, "after a worker dies");
  fields.Range("backoff_seconds", &backoff_seconds, 0, 3600,
               "before the first restart; doubled for each further one");
  fields.Field("grow_after", &grow_after,
               "after this long with fewer workers, such as 90s, 10m or 1h, restart with all of "
               "them; 0: never");
  fields.Require(ParseDuration(grow_after).has_value(), "grow_after",
                 "must be a duration such as 90s, 10m or 1h, or 0");
}

}  // namespace renzan
