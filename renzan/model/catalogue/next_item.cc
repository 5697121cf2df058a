#include "renzan/model/catalogue/next_item.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/model/blocks/concat.h"
#include "renzan/model/blocks/sampled_softmax.h"
#include "renzan/model/catalogue/parts.h"

namespace renzan {

NextItem NextItemOf(const ModelOptions& options) {
  const std::vector<SequenceInput>& all = options.sequences;
  const auto history = std::find_if(all.begin(), all.end(), [](const SequenceInput& sequence) {
    return !sequence.target.empty() && sequence.negatives_of.empty();
  });
  if (history == all.end())
    Fail(ErrorCode::kConfig,
         "model.type: {} predicts the next item of a sequence, but no sequence shares its table "
         "with a feature of one value: import one with max_length in the schema, and with the "
         "item's table",
         options.type);
  const auto negatives = std::find_if(all.begin(), all.end(), [&](const SequenceInput& sequence) {
    return sequence.negatives_of == history->target;
  });
  if (negatives == all.end())
    Fail(ErrorCode::kConfig,
         "model.type: {} tells '{}' from negatives: say how many training draws for each sample, "
         "such as model.negatives: {{{}: 100}}",
         options.type, UnescapeName(history->target), UnescapeName(history->target));
  return {*history, *negatives};
}

void AddNextItemLogit(const ModelOptions& options, const NextItem& next, const std::string& newest,
                      Graph* graph) {
  std::vector<std::string> inputs = {newest};
  for (const TableInput& table : options.tables)
    if (table.name != next.history.target) inputs.push_back(EmbeddingsOf(table.name));
  if (options.num_dense > 0) inputs.push_back(kDenseInput);
  std::string query = newest;
  if (inputs.size() > 1) {
    graph->push_back({"query_input", inputs, Concat{}});
    std::vector<int64_t> layers = options.sizes.top_mlp;
    layers.push_back(next.history.dim);
    graph->push_back({"query", {"query_input"}, CommonMlp(options, std::move(layers), true)});
    query = "query";
  }
  graph->push_back({"logit",
                    {query, EmbeddingsOf(next.history.target), EmbeddingsOf(next.negatives.name)},
                    SampledSoftmax{}});
}

}  // namespace renzan
