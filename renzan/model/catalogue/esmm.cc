// ESMM (Ma et al., "Entire Space Multi-Task Model: An Effective Approach for Estimating Post-Click
// Conversion Rate", SIGIR 2018): two MLPs over the same embeddings, for clicks (`ctr`) and for
// conversions after clicks (`cvr`). Labels exist for clicks and for conversions of all impressions:
// their probability, `ctcvr`, is the product of both, so that `cvr` learns without a label.

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/model/blocks/product_of_probabilities.h"
#include "renzan/model/catalogue/catalogue.h"
#include "renzan/model/catalogue/parts.h"

namespace renzan {
namespace {

constexpr const char *kClick = "ctr", *kConversion = "ctcvr", *kAfterClick = "cvr";

}  // namespace

std::vector<ModelOutput> EsmmOutputs(const std::vector<std::string>& labels) {
  if (labels.size() != 2)
    Fail(ErrorCode::kConfig,
         "model.type: esmm learns from two labels, the click and the conversion, but the training "
         "data have {}: name them in model.outputs.ctr.label and model.outputs.ctcvr.label, beside "
         "cvr: {{loss: none}}",
         labels.size());
  return {{.name = kClick, .block = BlockOfOutput(kClick), .label = labels[0]},
          {.name = kConversion, .block = BlockOfOutput(kConversion), .label = labels[1]},
          {.name = kAfterClick, .block = BlockOfOutput(kAfterClick)}};
}

Graph EsmmGraph(const ModelOptions& options) {
  for (const ModelOutput& output : options.outputs)
    if (output.name != kClick && output.name != kConversion && output.name != kAfterClick)
      Fail(ErrorCode::kConfig,
           "model.outputs: model.type: esmm gives ctr, cvr and ctcvr, but no '{}'", output.name);
  for (const ModelOutput& output : options.outputs)
    if (output.loss == Loss::kSquaredError)
      Fail(ErrorCode::kConfig,
           "model.outputs.{}: model.type: esmm multiplies probabilities, so that it cannot learn "
           "from numbers by squared_error: use labels of 0 and 1, or another model",
           output.name);
  if (std::none_of(options.outputs.begin(), options.outputs.end(),
                   [](const ModelOutput& output) { return output.name == kConversion; }))
    Fail(ErrorCode::kConfig,
         "model.outputs: model.type: esmm learns conversions from the output ctcvr: name its label "
         "in model.outputs.ctcvr.label");
  Graph graph;
  const std::string x = AddDeepInput(options, EmbeddingsIfAny(options), &graph);
  const std::string click = BlockOfOutput(kClick), after_click = BlockOfOutput(kAfterClick);
  graph.push_back(MlpToLogit(options, click, x));
  graph.push_back(MlpToLogit(options, after_click, x));
  graph.push_back({BlockOfOutput(kConversion), {click, after_click}, ProductOfProbabilities{}});
  return graph;
}

}  // namespace renzan
