#pragma once

// The two MLPs of the DLRM family. Bottom: dense features -> feature vector 0; without dense
// features there is no bottom MLP, and vector 0 is zero. Top: interactions -> logit.

#include <algorithm>
#include <optional>
#include <vector>

#include "renzan/model/model.h"
#include "renzan/nn/mlp.h"

namespace renzan {

inline std::optional<Mlp> MakeBottomMlp(const ModelOptions& options, ParameterLayout* layout) {
  if (options.num_dense == 0) return std::nullopt;
  std::vector<int64_t> sizes = {options.num_dense};
  sizes.insert(sizes.end(), options.bottom_mlp.begin(), options.bottom_mlp.end());
  sizes.push_back(options.embedding_dim);
  return Mlp("bottom", sizes, Mlp::LastLayer::kRelu, layout, options.dropout);
}

inline Mlp MakeTopMlp(const ModelOptions& options, int64_t width, ParameterLayout* layout) {
  std::vector<int64_t> sizes = {width};
  sizes.insert(sizes.end(), options.top_mlp.begin(), options.top_mlp.end());
  sizes.push_back(1);
  return Mlp("top", sizes, Mlp::LastLayer::kLinear, layout, options.dropout);
}

// The columns of an MLP's workspace: its outputs, and two gradients that alternate.
inline void AddMlpColumns(int64_t in, const std::vector<int64_t>& widths, int64_t last,
                          std::vector<int64_t>* columns) {
  columns->insert(columns->end(), widths.begin(), widths.end());
  columns->push_back(last);
  int64_t widest = std::max(in, last);
  for (const int64_t width : widths) widest = std::max(widest, width);
  columns->insert(columns->end(), 2, widest);
}

// The columns of everything before the interaction: dense features, feature vectors and their
// gradients, the bottom MLP and the gradient of its output.
inline std::vector<int64_t> ColumnsOfInputs(const ModelOptions& options) {
  const int64_t features = FeaturesPerSample(options);
  std::vector<int64_t> columns = {options.num_dense, features, features, options.embedding_dim};
  AddMlpColumns(options.num_dense, options.bottom_mlp, options.embedding_dim, &columns);
  return columns;
}

// The top MLP's output is the logit.
inline void ReadLogits(const Mlp::Workspace& top, AlignedBuffer* logits) {
  for (size_t i = 0; i < logits->size(); ++i)
    (*logits)[i] = top.output().at(static_cast<int64_t>(i), 0);
}
inline void WriteLogitGradient(const AlignedBuffer& d_logits, BlockedMatrix* d_output) {
  for (size_t i = 0; i < d_logits.size(); ++i)
    d_output->Set(static_cast<int64_t>(i), 0, d_logits[i]);
}

}  // namespace renzan
