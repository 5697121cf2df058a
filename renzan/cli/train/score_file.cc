#include "renzan/cli/train/score_file.h"

#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "renzan/base/config/config.h"
#include "renzan/base/error.h"
#include "renzan/data/text/csv_field.h"
#include "renzan/data/vocabulary.h"
#include "renzan/model/loss.h"

namespace renzan {
void CheckScoreFileName(const std::string& path, const std::vector<std::string>& with) {
  if (!path.ends_with(".npy") && !path.ends_with(".csv"))
    Fail(ErrorCode::kUsage, "--output {}: the name must end in .npy or .csv", path);
  if (!with.empty() && !path.ends_with(".csv"))
    Fail(ErrorCode::kUsage, "--with: {} holds scores only; write to a file that ends in .csv",
         path);
}

ScoreFile::ScoreFile(const std::string& path, const Dataset& dataset,
                     const std::vector<std::string>& with, int64_t first_row)
    : path_(path), dataset_(dataset), staged_(path), next_row_(first_row) {
  for (const std::string& name : with) {
    columns_.push_back(ColumnNamed(dataset, name));
    Column& column = columns_.back();
    if (column.kind != Column::Kind::kCategorical) continue;
    column.names = std::make_unique<ValueNames>(dataset, column.index);
    if (!column.names->known()) column.name += " (id)";
  }
  if (path.ends_with(".npy")) {
    npy_ = std::make_unique<NpyWriter>(staged_.staging(), NpyType::kFloat32);
    return;
  }
  csv_ = std::make_unique<FileWriter>(staged_.staging());
  for (const Column& column : columns_) csv_->Write(CsvField(column.name) + ",");
  csv_->Write("score\n");
}

void ScoreFile::CheckColumns(const Dataset& dataset, const std::vector<std::string>& with) {
  for (const std::string& name : with) ColumnNamed(dataset, name);
}

ScoreFile::Column ScoreFile::ColumnNamed(const Dataset& dataset, const std::string& name) {
  const DatasetSchema& schema = dataset.schema();
  std::vector<std::string> names;
  std::optional<Column> found;
  const auto look_at = [&](Column::Kind kind, size_t index, const std::string& other) {
    names.push_back(other);
    if (other == name) found = Column{.kind = kind, .index = index, .name = name, .names = nullptr};
  };
  look_at(Column::Kind::kLabel, 0, schema.label);
  for (size_t d = 0; d < schema.dense.size(); ++d)
    look_at(Column::Kind::kDense, d, schema.dense[d]);
  for (size_t t = 0; t < schema.categorical.size(); ++t)
    look_at(Column::Kind::kCategorical, t, schema.categorical[t].name);
  if (found) return std::move(*found);
  const std::string nearest = NearestName(name, names);
  Fail(ErrorCode::kUsage, "--with {}: {} has no such column{}", name, dataset.directory(),
       nearest.empty() ? "" : ": did you mean '" + nearest + "'?");
}

std::string ScoreFile::Text(const Column& column, const Batch& batch, size_t row) const {
  if (column.kind == Column::Kind::kLabel) return fmt::format("{}", batch.label[row]);
  if (column.kind == Column::Kind::kDense)
    return fmt::format("{}", batch.dense[row * dataset_.schema().dense.size() + column.index]);
  const auto value = [&](int64_t id) {
    // A missing value is an empty field, as in the input.
    if (column.names->known() && !column.names->are_ids() && id == Vocabulary::kMissing)
      return std::string();
    return column.names->Shown(id);
  };
  const FeatureIds& ids = batch.categorical[column.index];
  if (ids.one_hot()) return CsvField(value(ids.values[row]));
  std::string bag;
  for (int32_t i = ids.offsets[row]; i < ids.offsets[row + 1]; ++i) {
    if (i > ids.offsets[row]) bag += '|';
    bag += value(ids.values[static_cast<size_t>(i)]);
  }
  return CsvField(bag);
}

void ScoreFile::AppendLines(std::span<const float> logits) {
  if (!columns_.empty()) {
    std::vector<int64_t> rows(logits.size());
    std::iota(rows.begin(), rows.end(), next_row_);
    dataset_.Read(rows, &batch_);
  }
  for (size_t i = 0; i < logits.size(); ++i) {
    for (const Column& column : columns_) csv_->Write(Text(column, batch_, i) + ",");
    csv_->Write(fmt::format("{}\n", Sigmoid(logits[i])));
  }
}

void ScoreFile::Append(std::span<const float> logits) {
  for (const float logit : logits) {
    if (!std::isfinite(logit)) ++non_finite_;
    if (npy_) npy_->AppendValue(Sigmoid(logit));
  }
  if (csv_) AppendLines(logits);
  rows_ += static_cast<int64_t>(logits.size());
  next_row_ += static_cast<int64_t>(logits.size());
}

void ScoreFile::Close() {
  if (non_finite_ > 0)
    Fail(ErrorCode::kSoftware,
         "{} of {} predictions are NaN or infinite, so {} is not written: the model cannot be "
         "used, or the data hold values far outside the range it was trained on",
         non_finite_, rows_, path_);
  if (npy_) npy_->Close();
  if (csv_) csv_->Close();
  staged_.Commit();
}

}  // namespace renzan
