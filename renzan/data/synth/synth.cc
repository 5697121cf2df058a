#include "renzan/data/synth/synth.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/data/dataset/dataset_staging.h"
#include "renzan/data/dataset/dataset_writer.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/synth/teacher_report.h"
#include "renzan/data/text/row_parser.h"
#include "renzan/data/text/text_output.h"

namespace renzan {
namespace {

constexpr size_t kScoreBins = 1 << 20;
constexpr int64_t kRowsPerProgressReport = 4096;
constexpr size_t kTextBlockBytes = 128 << 10;

void AppendHex(uint32_t value, std::string* text) {
  for (int shift = 28; shift >= 0; shift -= 4) *text += "0123456789abcdef"[(value >> shift) & 15];
}

void AppendCriteoLine(const Teacher& teacher, const SynthRow& row, std::string* text) {
  *text += row.label == 1.0f ? '1' : '0';
  for (int64_t value : row.dense) {
    *text += '\t';
    if (value == SynthRow::kMissingDense) continue;
    char digits[24];
    text->append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  }
  for (size_t f = 0; f < row.one_hot.size(); ++f) {
    *text += '\t';
    if (row.one_hot[f] != 0) AppendHex(teacher.TextValue(f, row.one_hot[f]), text);
  }
  *text += '\n';
}

// Draws the rows in order and scores the teacher on them.
template <typename Sink>
SynthResult DrawRows(const SynthOptions& options, const Teacher& teacher, const Sink& sink) {
  TeacherScore score;
  SynthRow row;
  for (int64_t i = 0; i < options.rows; ++i) {
    if (i % kRowsPerProgressReport == 0) {
      ThrowIfStopped(options.stop);
      if (options.progress) options.progress(i);
    }
    teacher.Draw(options.first_row + i, &row);
    score.Add(row.probability, row.label == 1.0f);
    sink(row);
  }
  if (options.progress) options.progress(options.rows);
  return {score.Result(), score.label_rate()};
}

SynthResult WriteCriteo(const SynthOptions& options, const Teacher& teacher) {
  if (options.teacher.num_dense != 13 || options.teacher.num_one_hot != 26 ||
      options.teacher.num_multi_hot != 0)
    Fail(ErrorCode::kUsage,
         "format criteo has 13 dense, 26 one-hot and no multi-hot features; "
         "--format dataset takes any number");
  TextOutput output(options.output);
  // An older file's report must not be mistaken for this one's.
  std::remove(TeacherReportPath(options.output).c_str());
  std::string text;
  const SynthResult result = DrawRows(options, teacher, [&](const SynthRow& row) {
    AppendCriteoLine(teacher, row, &text);
    if (text.size() < kTextBlockBytes) return;
    output.Write(text);
    text.clear();
  });
  output.Write(text);
  output.Close();
  WriteTeacherReport(options.output, options.rows, options.teacher.seed, options.first_row,
                     result.bayes_optimal);
  return result;
}

SynthResult WriteDataset(const SynthOptions& options, const Teacher& teacher) {
  DatasetWriter writer(options.output, teacher.schema(),
                       {.shard_rows = options.shard_rows,
                        .created_by = fmt::format("synth --seed {} --first-row {}",
                                                  options.teacher.seed, options.first_row)});
  std::vector<float> dense;
  const SynthResult result = DrawRows(options, teacher, [&](const SynthRow& row) {
    dense.clear();
    for (int64_t value : row.dense) dense.push_back(LogTransform(static_cast<double>(value)));
    writer.Append(row.label, dense, row.one_hot, row.multi_hot);
  });
  writer.manifest().generated["teacher"] = result.bayes_optimal;
  writer.Finish();
  return result;
}

}  // namespace

SynthResult Synthesize(const SynthOptions& options) {
  if (options.rows < 1 || options.first_row < 0)
    Fail(ErrorCode::kUsage, "--rows must be at least 1 and --first-row at least 0");
  const Teacher teacher(options.teacher);
  if (options.format == "criteo") return WriteCriteo(options, teacher);
  if (options.format == "dataset")
    return MakingDataset(options.output, [&] { return WriteDataset(options, teacher); });
  Fail(ErrorCode::kUsage, "unknown format '{}': use criteo or dataset", options.format);
}

TeacherScore::TeacherScore() : positives_(kScoreBins), negatives_(kScoreBins) {}

void TeacherScore::Add(double probability, bool positive) {
  const auto bin = std::min(static_cast<size_t>(probability * kScoreBins), kScoreBins - 1);
  ++(positive ? positives_ : negatives_)[bin];
  ++num_rows_;
  num_positive_ += positive;
  loss_ -= std::log(std::max(positive ? probability : 1 - probability, 1e-300));
}

BayesOptimal TeacherScore::Result() const {
  BayesOptimal result;
  const int64_t num_negative = num_rows_ - num_positive_;
  double won = 0;  // pairs in which the positive row has the higher probability; ties count half
  int64_t negatives_below = 0;
  for (size_t bin = 0; bin < kScoreBins; ++bin) {
    won += static_cast<double>(positives_[bin]) *
           (static_cast<double>(negatives_below) + 0.5 * static_cast<double>(negatives_[bin]));
    negatives_below += negatives_[bin];
  }
  const double pairs = static_cast<double>(num_positive_) * static_cast<double>(num_negative);
  result.best_auc = pairs > 0 ? won / pairs : 0.5;
  result.best_log_loss = num_rows_ > 0 ? loss_ / static_cast<double>(num_rows_) : 0;
  return result;
}

double TeacherScore::label_rate() const {
  return num_rows_ > 0 ? static_cast<double>(num_positive_) / static_cast<double>(num_rows_) : 0;
}

}  // namespace renzan
