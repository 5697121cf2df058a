#include "renzan/run_spec/parameter_groups.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan {
namespace {

void CheckBlocksExist(const ParameterLayout& layout,
                      const std::map<std::string, BlockRateConfig>& blocks) {
  std::vector<std::string> names;
  for (const Parameter& parameter : layout.parameters())
    if (names.empty() || names.back() != parameter.block) names.push_back(parameter.block);
  for (const auto& [name, block] : blocks) {
    if (std::ranges::find(names, name) != names.end()) continue;
    const std::string nearest = NearestName(name, names);
    Fail(ErrorCode::kConfig,
         "optimizer.blocks.{}: the model has no such block with parameters{}; "
         "those are {}",
         name, nearest.empty() ? "" : " (did you mean '" + nearest + "'?)", fmt::join(names, ", "));
  }
}

}  // namespace

std::vector<ParameterGroup> GroupsOf(const Model& model,
                                     const std::map<std::string, BlockRateConfig>& blocks) {
  const ParameterLayout& layout = model.layout();
  CheckBlocksExist(layout, blocks);
  std::vector<ParameterGroup> groups;
  const std::vector<Parameter>& all = layout.parameters();
  for (size_t i = 0; i < all.size(); ++i) {
    const auto found = blocks.find(all[i].block);
    const BlockRateConfig own = found == blocks.end() ? BlockRateConfig() : found->second;
    const int64_t end = i + 1 < all.size() ? all[i + 1].offset : layout.size();
    const ParameterGroup group{.end = static_cast<size_t>(end),
                               .learning_rate_factor = own.learning_rate_factor,
                               .frozen = own.frozen};
    if (!groups.empty() && groups.back().learning_rate_factor == group.learning_rate_factor &&
        groups.back().frozen == group.frozen) {
      groups.back().end = group.end;
    } else {
      groups.push_back(group);
    }
  }
  // A model may have no parameters besides its tables.
  if (groups.empty()) groups.push_back({.end = static_cast<size_t>(layout.size())});
  return groups;
}

}  // namespace renzan
