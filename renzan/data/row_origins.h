#pragma once

// A table is trained on another day's data, whose vocabulary may have other values: each row
// follows its value.

#include <cstdint>
#include <string>
#include <vector>

#include "renzan/data/dataset/manifest.h"

namespace renzan {

// Where the rows of a feature's table come from: rows of an earlier table.
struct RowOrigins {
  int64_t rows = 0, earlier_rows = 0;
  int64_t same = 0;  // rows [0, same) are those with the same numbers
  std::vector<int32_t>
      others;  // of the rows from `same` on: the earlier row, or -1; may be shorter

  // -1 if the row's value is new.
  int64_t Of(int64_t row) const {
    if (row < same) return row;
    const size_t i = static_cast<size_t>(row - same);
    return i < others.size() ? others[i] : -1;
  }
  int64_t taken() const;  // rows that are not new
  int64_t added() const { return rows - taken(); }
  int64_t dropped() const { return earlier_rows - taken(); }
  // Whether there was no earlier table.
  bool begins_anew() const { return earlier_rows == 0; }
};

// What is known of an earlier table of a feature.
struct EarlierTable {
  std::string vocabulary;  // CategoricalFeature::vocabulary
  int64_t num_embeddings = 0;
  std::string dataset;  // where the values were; may be gone
};

// How the values of `feature` in a dataset were mapped before. The earlier dataset is read only if
// the earlier vocabulary is not the beginning of this one. Throws kConfig if values are mapped in a
// way in which rows cannot follow them (another number of hashes), kNoInput, kIo or kData if values
// cannot be read.
RowOrigins OriginsOfRows(const std::string& directory, const DatasetManifest& manifest,
                         const std::string& feature, const EarlierTable& earlier);

}  // namespace renzan
