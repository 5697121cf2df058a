#pragma once

// The texts of a key (DatasetManifest::keys), for predictions. Thread-safe once made.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/data/dataset/dataset.h"
#include "renzan/data/dataset/npy.h"

namespace renzan {

class KeyColumn {
 public:
  // Of rows [begin, end) of the dataset. Checks the files of their shards, which a store sends
  // first, against their SHA-256; throws kData if they are corrupt.
  KeyColumn(const Dataset& dataset, const std::string& name, int64_t begin, int64_t end);

  // The text of one of these rows, byte for byte as in the input's field.
  std::string_view Text(int64_t row) const;

  // Whether all of these texts are UTF-8.
  bool are_utf8() const;

 private:
  struct Shard {
    int64_t first_row = 0;
    NpyArray text, at;  // row r's is text[at[r] : at[r + 1]]
  };

  int64_t begin_, end_;
  std::vector<Shard> shards_;
};

}  // namespace renzan
