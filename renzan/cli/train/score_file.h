#pragma once

// The file of scores that `predict` writes: a float32 array [rows] (.npy), or text with a header
// and one line per row (.csv), in which columns of the data may stand before the score.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "renzan/base/file/file.h"
#include "renzan/base/file/staged.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/data/dataset/npy.h"
#include "renzan/data/value_names.h"

namespace renzan {

// Throws kUsage unless the name ends in .npy or .csv, and for `with` unless it is .csv.
void CheckScoreFileName(const std::string& path, const std::vector<std::string>& with);

class ScoreFile {
 public:
  // Throws kUsage unless the dataset has columns of these names: its label, dense and categorical
  // features.
  static void CheckColumns(const Dataset& dataset, const std::vector<std::string>& with);

  // `with`: names of such columns.
  ScoreFile(const std::string& path, const Dataset& dataset, const std::vector<std::string>& with,
            int64_t first_row);

  // Writes the scores of the next rows.
  void Append(std::span<const float> logits);

  // Throws kSoftware, and leaves no file, when a prediction was NaN or infinite.
  void Close();

 private:
  struct Column {
    enum class Kind { kLabel, kDense, kCategorical } kind;
    size_t index = 0;                   // of the feature
    std::string name;                   // in the header
    std::unique_ptr<ValueNames> names;  // of a categorical feature
  };
  static Column ColumnNamed(const Dataset& dataset, const std::string& name);
  // As a field of CSV.
  std::string Text(const Column& column, const Batch& batch, size_t row) const;
  void AppendLines(std::span<const float> logits);

  std::string path_;
  const Dataset& dataset_;
  StagedFile staged_;
  std::unique_ptr<NpyWriter> npy_;
  std::unique_ptr<FileWriter> csv_;
  std::vector<Column> columns_;
  Batch batch_;  // the current rows, if there are columns
  int64_t next_row_;
  int64_t rows_ = 0, non_finite_ = 0;
};

}  // namespace renzan
