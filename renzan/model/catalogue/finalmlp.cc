// FinalMLP (Mao et al., "FinalMLP: An Enhanced Two-Stream MLP Model for CTR Prediction", AAAI
// 2023): two MLPs over the same embeddings and dense features, and a bilinear fusion of what they
// give.
//
// The paper has more: a gate before each MLP that weights its inputs ("stream-specific feature
// selection"), so that the streams see different features; a fusion in several heads (here one; the
// block `bilinear` has them); dropout after the last layers, too; and batch normalization.

#include "renzan/model/blocks/bilinear.h"
#include "renzan/model/blocks/mlp.h"
#include "renzan/model/catalogue/catalogue.h"
#include "renzan/model/catalogue/parts.h"

namespace renzan {

Graph FinalMlpGraph(const ModelOptions& options) {
  Graph graph;
  const std::string x = AddDeepInput(options, kEmbeddingsInput, &graph);
  const auto add_stream = [&](const std::string& name, const std::vector<int64_t>& layers) {
    if (layers.empty()) return x;
    graph.push_back({name, {x}, CommonMlp(options, layers)});
    return name;
  };
  const std::string first = add_stream("first", options.sizes.top_mlp);
  const std::string second =
      add_stream("second", options.sizes.second_mlp.empty() ? options.sizes.top_mlp
                                                            : options.sizes.second_mlp);
  graph.push_back({"logit", {first, second}, Bilinear{}});
  return graph;
}

}  // namespace renzan
