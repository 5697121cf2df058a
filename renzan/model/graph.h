#pragma once

// A model as a graph of blocks: what the catalogue's entries build (catalogue/catalogue.h), and
// what a configuration may state (`model.blocks`).

#include <string>
#include <vector>

#include "renzan/model/blocks/block.h"

namespace renzan {

// The inputs of every graph.
inline constexpr const char* kDenseInput = "dense";            // one vector: the dense features
inline constexpr const char* kEmbeddingsInput = "embeddings";  // one vector for each feature
// "embeddings.NAME": one vector of a feature, or of a sequence one for each position. Sequences are
// not part of `embeddings`.
std::string EmbeddingsOf(const std::string& feature);
// The feature of such an input; empty for another one.
std::string FeatureOfInput(const std::string& input);

// The negatives of a feature are a sequence "embeddings.FEATURE.negatives", with dots escaped.
inline constexpr const char* kNegativesSuffix = ".negatives";

// Whether a block may have the name: letters, digits, _ and -.
bool IsBlockName(const std::string& name);

struct GraphBlock {
  std::string name;
  std::vector<std::string> inputs;  // names of blocks before it, or the inputs above
  BlockOptions options;
  std::string where = {};  // "config.yaml:23:5", for messages; no part of the model
};

using Graph = std::vector<GraphBlock>;

// A block that gives an output, and where the configuration says so.
struct GraphOutput {
  std::string block, where = {};
};

// Sorts blocks so that each comes after its inputs, and as far as that allows in the order of their
// names. `outputs`: the blocks that give the model's outputs; none: there is one, the last block.
// Throws BlockError if an input or output does not exist, blocks form a cycle, or one is used
// neither by another nor as an output.
Graph SortedGraph(std::vector<GraphBlock> blocks, const std::vector<GraphOutput>& outputs = {});

}  // namespace renzan
