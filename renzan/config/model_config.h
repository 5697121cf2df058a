#pragma once

// Section `model`.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "renzan/base/config/config.h"
#include "renzan/model/graph.h"
#include "renzan/model/model.h"
#include "renzan/model/sizes.h"

namespace renzan {

struct TableConfig {
  int64_t embedding_dim = 0;              // 0: as in `model`
  std::string pooling;                    // empty: as in `model`
  int row_blocks = 0, column_blocks = 0;  // 0: as in `numerics`
  double pooling_factor = 0;              // 0: counted in the data
  std::string initial_values;             // empty: as in `model`
  double initial_deviation = 0;           // 0: as in `model`
  double learning_rate_factor = 1;
  bool frozen = false;
  bool operator==(const TableConfig&) const = default;
  void Describe(ConfigFields& fields);
};

// A block of `model.blocks`: its type, its inputs and the options that its type has.
struct BlockConfig {
  std::string type;
  std::vector<std::string> inputs;
  std::optional<BlockOptions> options;  // of the type
  std::string where = {};               // ConfigFields::Where()
  void Describe(ConfigFields& fields);
};

// What the model predicts, and from which label it learns that.
struct OutputConfig {
  std::string block;  // of type `blocks`; empty: of the output's name
  std::string label;  // empty: of the output's name
  std::string loss;   // empty: squared_error of a label that is a number, else binary_cross_entropy
  double weight = 1;  // of its loss
  std::string where = {};  // ConfigFields::Where(); no part of its value
  bool operator==(const OutputConfig& other) const {
    return std::tie(block, label, loss, weight) ==
           std::tie(other.block, other.label, other.loss, other.weight);
  }
  void Describe(ConfigFields& fields);
  bool has_loss() const { return loss != "none"; }
};

struct ModelConfig : ModelSizes {
  std::string type = "dlrm";
  std::map<std::string, BlockConfig> blocks;  // by name; of type `blocks`
  // By name. None: of a model with one output, which learns from the first label.
  std::map<std::string, OutputConfig> outputs;
  std::map<std::string, int64_t> negatives;  // by feature: how many training draws for each sample
  int64_t embedding_dim = 16;
  std::string pooling = "sum";                // of multi-hot features without an entry in `tables`
  std::string initial_values = "uniform";     // of rows, of tables that do not say otherwise
  double initial_deviation = 1e-4;            // of `normal`
  std::map<std::string, TableConfig> tables;  // by table or feature
  void Describe(ConfigFields& fields);
};

// Sets what a table leaves to `model`: how bags are pooled and how rows begin.
void FillFromModel(const ModelConfig& model, TableConfig* table);

// In the order of their names; at least one.
std::vector<ModelOutput> OutputsOf(const ModelConfig& model);
// Sets the outputs of a model of the catalogue that has several, if they are not set
// (CatalogueEntry::outputs), the output of others if it learns from a number, and each output's
// loss. `numbers`: those of the labels that are numbers.
void FillOutputs(const std::vector<std::string>& labels, const std::vector<std::string>& numbers,
                 ModelConfig* model);

// The graph that `model.blocks` states. Throws kConfig if it is none.
Graph GraphOf(const ModelConfig& model);
// The other way round.
std::map<std::string, BlockConfig> BlocksOf(const Graph& graph);

}  // namespace renzan
