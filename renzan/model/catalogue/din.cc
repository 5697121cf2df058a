// DIN (Zhou et al., "Deep Interest Network for Click-Through Rate Prediction", KDD 2018): an MLP
// over the embeddings, the dense features and what attention takes from each sequence. A sequence
// is compared with the feature that shares its table; without one, it is averaged.

#include <fmt/format.h>

#include "renzan/model/blocks/concat.h"
#include "renzan/model/blocks/pool.h"
#include "renzan/model/blocks/target_attention.h"
#include "renzan/model/catalogue/catalogue.h"
#include "renzan/model/catalogue/parts.h"

namespace renzan {

Graph DinGraph(const ModelOptions& options) {
  Graph graph;
  std::vector<std::string> inputs;
  if (!options.tables.empty()) inputs.push_back(kEmbeddingsInput);
  for (size_t s = 0; s < options.sequences.size(); ++s) {
    const SequenceInput& sequence = options.sequences[s];
    inputs.push_back(fmt::format("interest_{}", s));
    if (sequence.target.empty()) {
      graph.push_back({inputs.back(), {EmbeddingsOf(sequence.name)}, Pool{"mean"}});
    } else {
      graph.push_back({inputs.back(),
                       {EmbeddingsOf(sequence.target), EmbeddingsOf(sequence.name)},
                       TargetAttention{.layers = options.sizes.attention_mlp}});
    }
  }
  if (options.num_dense > 0) inputs.push_back(kDenseInput);
  graph.push_back({"deep_input", inputs, Concat{}});
  graph.push_back(MlpToLogit(options, "deep", "deep_input"));
  return graph;
}

}  // namespace renzan
