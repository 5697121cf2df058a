#include "renzan/config/sharding_config.h"

#include <algorithm>

#include "renzan/config/decides.h"
#include "renzan/plan/planner.h"

namespace renzan {

void ShardingConfig::Describe(ConfigFields& fields) {
  fields.Tag(Decides::kRun);
  fields.Choice("default", &default_sharding, ShardingNames(), "of tables not named in tables");
  fields.Field("tables", &tables, "the same by feature name");
  fields.Field("plan", &plan, "a file made by `renzan plan --output`, instead of both");
  for (const auto& [name, sharding] : tables)
    fields.Require(std::find(ShardingNames().begin(), ShardingNames().end(), sharding) !=
                       ShardingNames().end(),
                   "tables",
                   fmt::format("has '{}' for {}: allowed are {}", sharding, name,
                               fmt::join(ShardingNames(), ", ")));
}

}  // namespace renzan
