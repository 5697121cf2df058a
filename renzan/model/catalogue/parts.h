#pragma once

// Parts that several entries of the catalogue have.

#include <string>
#include <vector>

#include "renzan/model/blocks/cross.h"
#include "renzan/model/blocks/mlp.h"
#include "renzan/model/graph.h"
#include "renzan/model/model.h"

namespace renzan {

// An MLP with the options that all MLPs of a model have in common.
Mlp CommonMlp(const ModelOptions& options, std::vector<int64_t> layers, bool linear_output = false);

// "bottom": the dense features' MLP, with an output of embedding_dim and ReLU everywhere; zeros
// where there are no dense features.
GraphBlock BottomMlp(const ModelOptions& options);

// An MLP with the widths of top_mlp that ends in a logit.
GraphBlock MlpToLogit(const ModelOptions& options, const std::string& name,
                      const std::string& input);

// Appends a linear model of everything: the first-order weights of the tables, and weights of the
// dense features. Returns the names of its logits.
std::vector<std::string> AddLinear(const ModelOptions& options, Graph* graph);

// Appends what takes the embeddings out of rows with first-order weights. Returns its name.
std::string AddFactors(Graph* graph);

// Appends projections to embedding_dim if there are embeddings of other dimensions in `input`,
// whose vectors come from the tables with `extra` more columns. Returns the name of the result.
std::string AddProjection(const ModelOptions& options, const std::string& input, int64_t extra,
                          Graph* graph);

// The input of all embeddings, or "" without tables.
std::string EmbeddingsIfAny(const ModelOptions& options);

// Appends "deep_input": the embeddings (`input`; empty: none) and the dense features side by side.
// Returns its name.
std::string AddDeepInput(const ModelOptions& options, const std::string& input, Graph* graph);

// Appends `count` experts over `input`, MLPs of these widths: "<prefix>_0", "<prefix>_1", ...
// Returns their names.
std::vector<std::string> AddExperts(const ModelOptions& options, const std::string& prefix,
                                    int count, const std::string& input,
                                    const std::vector<int64_t>& layers, Graph* graph);

// Appends what mixes experts by a gate over `input`. Returns its name, or that of a single expert.
std::string AddGate(const std::string& name, const std::string& input,
                    const std::vector<std::string>& experts, Graph* graph);

// A cross network beside an MLP of the widths of top_mlp, over embeddings and dense features, whose
// outputs a linear layer combines.
Graph CrossBesideMlp(const ModelOptions& options, const Cross& cross);

}  // namespace renzan
