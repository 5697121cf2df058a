#pragma once

// Section `model`.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "renzan/base/config/config.h"
#include "renzan/model/graph.h"
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
  bool operator==(const TableConfig&) const = default;
  void Describe(ConfigFields& fields);
};

// A block of `model.blocks`: its type, its inputs and the options that its type has.
struct BlockConfig {
  std::string type;
  std::vector<std::string> inputs;
  std::optional<BlockOptions> options;  // of the type
  void Describe(ConfigFields& fields);
};

struct ModelConfig : ModelSizes {
  std::string type = "dlrm";
  std::map<std::string, BlockConfig> blocks;  // by name; of type `blocks`
  int64_t embedding_dim = 16;
  std::string pooling = "sum";                // of multi-hot features without an entry in `tables`
  std::string initial_values = "uniform";     // of rows, of tables that do not say otherwise
  double initial_deviation = 1e-4;            // of `normal`
  std::map<std::string, TableConfig> tables;  // by table or feature
  void Describe(ConfigFields& fields);
};

// Sets what a table leaves to `model`: how bags are pooled and how rows begin.
void FillFromModel(const ModelConfig& model, TableConfig* table);

// The graph that `model.blocks` states. Throws kConfig if it is none.
Graph GraphOf(const ModelConfig& model);
// The other way round.
std::map<std::string, BlockConfig> BlocksOf(const Graph& graph);

}  // namespace renzan
