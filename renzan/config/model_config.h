#pragma once

// Section `model`.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "renzan/base/config/config.h"

namespace renzan {

struct TableConfig {
  int64_t embedding_dim = 0;              // 0: as in `model`
  std::string pooling;                    // empty: as in `model`
  int row_blocks = 0, column_blocks = 0;  // 0: as in `numerics`
  double pooling_factor = 0;              // 0: counted in the data
  void Describe(ConfigFields& fields);
};

struct ModelConfig {
  std::string type = "dlrm";
  int64_t embedding_dim = 16;
  std::vector<int64_t> bottom_mlp = {512, 256, 64};
  std::vector<int64_t> top_mlp = {512, 256};
  int cross_layers = 3;
  int64_t cross_rank = 512;
  std::string pooling = "sum";                // of multi-hot features without an entry in `tables`
  double dropout = 0;                         // after the hidden layers of both MLPs
  std::map<std::string, TableConfig> tables;  // by feature name
  void Describe(ConfigFields& fields);
};

}  // namespace renzan
