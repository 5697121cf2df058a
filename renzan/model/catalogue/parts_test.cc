#include "renzan/model/catalogue/parts.h"

#include <gtest/gtest.h>

#include "renzan/model/blocks/sum.h"

namespace renzan {
namespace {

// Two tasks as MMoE has them: a gate for each, over the same experts.
TEST(CatalogueParts, ExpertsMixedByGatesMakeAModel) {
  for (const int experts : {1, 3}) {
    const ModelOptions options = {.type = kBlocksType, .num_dense = 4};
    Graph graph;
    const std::vector<std::string> shared =
        AddExperts(options, "expert", experts, kDenseInput, {8, 5}, &graph);
    ASSERT_EQ(shared.size(), static_cast<size_t>(experts));
    std::vector<std::string> logits;
    for (const std::string task : {"click", "buy"}) {
      const std::string mixed = AddGate(task + "_gate", kDenseInput, shared, &graph);
      logits.push_back(task);
      graph.push_back(MlpToLogit(options, task, mixed));
    }
    graph.push_back({"logit", logits, Sum{}});
    const Model model(options, SortedGraph(graph));
    int gates = 0;
    for (const Parameter& parameter : model.layout().parameters())
      if (parameter.name.find("_gate.weight") != std::string::npos) {
        EXPECT_EQ(parameter.shape, (std::vector<int64_t>{experts, 4}));
        ++gates;
      }
    EXPECT_EQ(gates, experts == 1 ? 0 : 2);
  }
}

}  // namespace
}  // namespace renzan
