#include <gtest/gtest.h>

#include <algorithm>

#include "renzan/model/model.h"

namespace renzan {
namespace {

// The names of the parameters of one sequence with rows of this dimension.
std::vector<std::string> BstParameters(int64_t dim, const std::string& target) {
  const ModelOptions options = {.type = "bst",
                                .tables = {{"item", dim}},
                                .sequences = {{"clicked", dim, 3, target}},
                                .sizes = {.top_mlp = {4}, .attention_heads = 2}};
  const std::unique_ptr<Model> made = MakeModel(options);
  std::vector<std::string> names;
  for (const Parameter& parameter : made->layout().parameters()) {
    names.push_back(parameter.name);
    if (parameter.name == "positions_0.weight") {
      EXPECT_EQ(parameter.size, dim * (target.empty() ? 3 : 4)) << "one more for the candidate";
    }
  }
  return names;
}

TEST(Bst, FitsAnyDimensionWithAndWithoutACandidate) {
  for (const std::string target : {"item", ""})
    for (const int64_t dim : {1, 3, 8}) {
      const std::vector<std::string> names = BstParameters(dim, target);
      const auto has = [&](const char* name) {
        return std::find(names.begin(), names.end(), name) != names.end();
      };
      EXPECT_TRUE(has("positions_0.weight") && has("heads_0.query.weight"));
      // A single column would become zero.
      EXPECT_EQ(has("attended_norm_0.gamma"), dim > 1);
    }
}

}  // namespace
}  // namespace renzan
