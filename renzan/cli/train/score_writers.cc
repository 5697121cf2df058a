#include "renzan/cli/train/score_writers.h"

#include <algorithm>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/data/dataset/npy.h"
#include "renzan/data/parquet/parquet_writer.h"
#include "renzan/data/text/csv_field.h"

namespace renzan {
namespace {

// A float32 array [rows], or [rows, outputs] of a model that has several.
class NpyScores : public ScoreWriter {
 public:
  NpyScores(const std::string& path, size_t outputs)
      : file_(path, NpyType::kFloat32,
              outputs == 1 ? std::vector<int64_t>() : std::vector{static_cast<int64_t>(outputs)}) {}
  void Append(std::span<const std::vector<float>> scores, const ScoredRows&) override {
    row_.resize(scores.size());
    for (size_t row = 0; row < scores[0].size(); ++row) {
      for (size_t output = 0; output < scores.size(); ++output) row_[output] = scores[output][row];
      file_.Append(row_.data(), 1);
    }
  }
  void Close() override { file_.Close(); }

 private:
  NpyWriter file_;
  std::vector<float> row_;
};

class CsvScores : public ScoreWriter {
 public:
  CsvScores(const std::string& path, const DatasetSchema& schema, std::vector<ScoreColumn> columns,
            const std::vector<std::string>& names)
      : file_(path), schema_(schema), columns_(std::move(columns)) {
    for (const ScoreColumn& column : columns_) file_.Write(CsvField(column.name) + ",");
    std::vector<std::string> fields;
    for (const std::string& name : names) fields.push_back(CsvField(name));
    file_.Write(fmt::format("{}\n", fmt::join(fields, ",")));
  }
  void Append(std::span<const std::vector<float>> scores, const ScoredRows& rows) override {
    for (size_t row = 0; row < scores[0].size(); ++row) {
      for (const ScoreColumn& column : columns_)
        file_.Write(CsvField(TextOf(column, schema_, rows, row)) + ",");
      file_.Write(fmt::format("{}", scores[0][row]));
      for (const std::vector<float>& more : scores.subspan(1))
        file_.Write(fmt::format(",{}", more[row]));
      file_.Write("\n");
    }
  }
  void Close() override { file_.Close(); }

 private:
  FileWriter file_;
  const DatasetSchema& schema_;
  const std::vector<ScoreColumn> columns_;
};

// Numbers as FLOAT, ids and numbers of rows as INT64, and other values as texts, as in a CSV file.
// Those of a key or a vocabulary in another encoding than UTF-8 are bytes.
class ParquetScores : public ScoreWriter {
 public:
  ParquetScores(const std::string& path, const DatasetSchema& schema,
                std::vector<ScoreColumn> columns, const std::vector<std::string>& names)
      : schema_(schema), columns_(std::move(columns)), file_(path, ColumnsOf(columns_, names)) {}

  void Append(std::span<const std::vector<float>> scores, const ScoredRows& rows) override {
    for (size_t row = 0; row < scores[0].size(); ++row) {
      for (size_t c = 0; c < columns_.size(); ++c) {
        const ScoreColumn& column = columns_[c];
        if (column.is_float()) {
          file_.Append(c, FloatOf(column, schema_, rows, row));
        } else if (column.is_integer()) {
          file_.Append(c, IntegerOf(column, rows, row));
        } else {
          file_.Append(c, TextOf(column, schema_, rows, row));
        }
      }
      for (size_t output = 0; output < scores.size(); ++output)
        file_.Append(columns_.size() + output, scores[output][row]);
      file_.EndRow();
    }
  }
  void Close() override { file_.Close(); }

 private:
  static std::vector<ParquetColumn> ColumnsOf(const std::vector<ScoreColumn>& columns,
                                              const std::vector<std::string>& names) {
    using Type = ParquetColumn::Type;
    std::vector<ParquetColumn> all;
    for (const ScoreColumn& column : columns)
      all.push_back({column.name, column.is_float()     ? Type::kFloat
                                  : column.is_integer() ? Type::kInt64
                                  : column.is_utf8()    ? Type::kText
                                                        : Type::kBytes});
    for (const std::string& name : names) all.push_back({name, Type::kFloat});
    return all;
  }

  const DatasetSchema& schema_;
  const std::vector<ScoreColumn> columns_;
  ParquetWriter file_;
};

constexpr ScoreFormat kFormats[] = {
    {".csv", true,
     [](const std::string& path, const DatasetSchema& schema, std::vector<ScoreColumn> columns,
        std::vector<std::string> names) -> std::unique_ptr<ScoreWriter> {
       return std::make_unique<CsvScores>(path, schema, std::move(columns), names);
     }},
    {".npy", false,
     [](const std::string& path, const DatasetSchema&, std::vector<ScoreColumn>,
        std::vector<std::string> names) -> std::unique_ptr<ScoreWriter> {
       return std::make_unique<NpyScores>(path, names.size());
     }},
    {".parquet", true,
     [](const std::string& path, const DatasetSchema& schema, std::vector<ScoreColumn> columns,
        std::vector<std::string> names) -> std::unique_ptr<ScoreWriter> {
       return std::make_unique<ParquetScores>(path, schema, std::move(columns), names);
     }}};

// ".csv or .parquet"
std::string Extensions(bool with_columns) {
  std::vector<std::string> all;
  for (const ScoreFormat& format : kFormats)
    if (format.has_columns || !with_columns) all.push_back(format.extension);
  const std::string last = all.back();
  all.pop_back();
  return fmt::format("{} or {}", fmt::join(all, ", "), last);
}

}  // namespace

const ScoreFormat& ScoreFormatOf(const std::string& path, bool with_columns) {
  const auto found =
      std::find_if(std::begin(kFormats), std::end(kFormats),
                   [&](const ScoreFormat& format) { return path.ends_with(format.extension); });
  if (found == std::end(kFormats))
    Fail(ErrorCode::kUsage, "--output {}: the name must end in {}", path, Extensions(false));
  if (with_columns && !found->has_columns)
    Fail(ErrorCode::kUsage,
         "--with: {} is an array of numbers and holds scores only; write to a file that ends in {}",
         path, Extensions(true));
  return *found;
}

}  // namespace renzan
