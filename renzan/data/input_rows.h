#pragma once

// The numbers that a dataset's rows have in the input of their import: rows that were skipped as
// bad, or left out by --keep-negatives, count there. Rows are counted from 0 over all files,
// without headers and empty lines.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "renzan/data/dataset/dataset.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/dataset/npy.h"

namespace renzan {

// Writes the file: int64 [runs, 2], the first row of each run of rows that are consecutive in the
// input, and its number there. Rows before the first run have their own numbers. Not thread-safe.
class InputRowsWriter {
 public:
  explicit InputRowsWriter(std::string path) : path_(std::move(path)) {}

  // The next row of the dataset.
  void Add(int64_t row, int64_t input_row);
  // Makes the file, with no runs if no rows were left out.
  FileEntry Close();

 private:
  NpyWriter& File();

  const std::string path_;
  std::optional<NpyWriter> file_;
  int64_t left_out_ = 0;  // before the last row
};

// Reads it. Thread-safe once made.
class InputRows {
 public:
  // Throws kConfig if an earlier version has imported the dataset and may have left rows out, kData
  // if the file is corrupt.
  explicit InputRows(const Dataset& dataset);

  int64_t Of(int64_t row) const;

 private:
  std::optional<NpyArray> runs_;
};

}  // namespace renzan
