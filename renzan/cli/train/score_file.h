#pragma once

// The file of scores that `predict` writes, in one of the formats of score_writers.h. It appears
// complete or not at all.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "renzan/base/file/staged.h"
#include "renzan/cli/train/score_writers.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/infer/evaluate.h"

namespace renzan {

class ScoreFile {
 public:
  // Of these rows. `with`: columns, as MakeScoreColumns takes them; `outputs`: of the model.
  ScoreFile(const std::string& path, const Dataset& dataset, const std::vector<std::string>& with,
            const std::vector<ModelOutput>& outputs, RowRange rows);

  // Writes the scores of the next rows: the probabilities that logits mean, and predicted numbers.
  void Append(const LogitsByOutput& logits);

  // Throws kSoftware, and leaves no file, when a prediction was NaN or infinite.
  void Close();

 private:
  std::string path_;
  const Dataset& dataset_;
  StagedFile staged_;
  const bool has_columns_;
  std::unique_ptr<ScoreWriter> writer_;
  ScoredRows rows_at_hand_;
  const std::vector<ModelOutput> outputs_;
  std::vector<std::vector<float>> scores_;  // theirs, by output
  int64_t next_row_;
  int64_t rows_ = 0, non_finite_ = 0;
};

}  // namespace renzan
