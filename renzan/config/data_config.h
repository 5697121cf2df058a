#pragma once

// Section `data`: what is learned from, and how it is read.

#include <cstdint>
#include <string>
#include <vector>

#include "renzan/base/config/config.h"
#include "renzan/config/decides.h"
#include "renzan/data/dataset/dataset.h"

namespace renzan {

struct SplitConfig {
  std::string path;           // dataset directory
  std::vector<int64_t> rows;  // [begin, end), or empty for all
  // `rows_decide`: what the choice of rows decides.
  void Describe(ConfigFields& fields, Decides rows_decide);
};

struct DataCacheConfig {
  std::string directory;
  std::string size = "0";
  DataCacheOptions options() const;
  void Describe(ConfigFields& fields);
};

struct DataConfig {
  SplitConfig train, eval;
  DataCacheConfig cache;
  bool shuffle = true;
  bool verify = false;
  bool verify_blocks = true;
  void Describe(ConfigFields& fields);
};

}  // namespace renzan
