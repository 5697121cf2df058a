#include "renzan/cli/train/score_file.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "renzan/base/error.h"
#include "renzan/model/loss.h"

namespace renzan {

ScoreFile::ScoreFile(const std::string& path, const Dataset& dataset,
                     const std::vector<std::string>& with, RowRange rows)
    : path_(path),
      dataset_(dataset),
      staged_(path),
      has_columns_(!with.empty()),
      writer_(
          ScoreFormatOf(path, has_columns_)
              .make(staged_.staging(), dataset.schema(), MakeScoreColumns(dataset, with, rows))),
      next_row_(rows.begin) {}

void ScoreFile::Append(std::span<const float> logits) {
  non_finite_ += std::count_if(logits.begin(), logits.end(),
                               [](float logit) { return !std::isfinite(logit); });
  rows_at_hand_.first = next_row_;
  if (has_columns_) {
    std::vector<int64_t> rows(logits.size());
    std::iota(rows.begin(), rows.end(), next_row_);
    dataset_.Read(rows, &rows_at_hand_.batch);
  }
  scores_.resize(logits.size());
  std::transform(logits.begin(), logits.end(), scores_.begin(), Sigmoid);
  writer_->Append(scores_, rows_at_hand_);
  rows_ += std::ssize(logits);
  next_row_ += std::ssize(logits);
}

void ScoreFile::Close() {
  if (non_finite_ > 0)
    Fail(ErrorCode::kSoftware,
         "{} of {} predictions are NaN or infinite, so {} is not written: the model cannot be "
         "used, or the data hold values far outside the range it was trained on",
         non_finite_, rows_, path_);
  writer_->Close();
  staged_.Commit();
}

}  // namespace renzan
