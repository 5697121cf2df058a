#include "renzan/cli/train/score_file.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "renzan/base/error.h"
#include "renzan/cli/train/score_columns.h"
#include "renzan/model/loss.h"

namespace renzan {

ScoreFile::ScoreFile(const std::string& path, const Dataset& dataset,
                     const std::vector<std::string>& with, const std::vector<ModelOutput>& outputs,
                     RowRange rows)
    : path_(path),
      dataset_(dataset),
      staged_(path),
      has_columns_(!with.empty()),
      writer_(ScoreFormatOf(path).make(staged_.staging(), dataset, rows,
                                       MakeScoreColumns(dataset, with, rows), ScoreNames(outputs))),
      outputs_(outputs),
      scores_(outputs.size()),
      next_row_(rows.begin) {}

void ScoreFile::Append(const LogitsByOutput& logits) {
  const size_t n = logits[0].size();
  for (size_t output = 0; output < logits.size(); ++output) {
    const std::span<const float> its = logits[output];
    non_finite_ +=
        std::count_if(its.begin(), its.end(), [](float logit) { return !std::isfinite(logit); });
    scores_[output].resize(n);
    if (outputs_[output].loss == Loss::kSquaredError)
      std::copy(its.begin(), its.end(), scores_[output].begin());
    else
      std::transform(its.begin(), its.end(), scores_[output].begin(), Sigmoid);
  }
  rows_at_hand_.first = next_row_;
  if (has_columns_) {
    std::vector<int64_t> rows(n);
    std::iota(rows.begin(), rows.end(), next_row_);
    dataset_.Read(rows, &rows_at_hand_.batch);
  }
  writer_->Append(scores_, rows_at_hand_);
  rows_ += static_cast<int64_t>(n);
  next_row_ += static_cast<int64_t>(n);
}

void ScoreFile::Close() {
  if (non_finite_ > 0)
    Fail(ErrorCode::kSoftware,
         "{} of {} predictions are NaN or infinite, so {} is not written: the model cannot be "
         "used, or the data hold values far outside the range it was trained on",
         non_finite_, rows_ * std::ssize(scores_), path_);
  writer_->Close();
  staged_.Commit();
}

}  // namespace renzan
