#include "renzan/cli/train/score_writers.h"

#include <algorithm>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cli/train/text_widths.h"
#include "renzan/data/dataset/npy.h"
#include "renzan/data/dataset/npy_table.h"
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

// Rows of a file whose columns have types: numbers, ids and numbers of rows, and other values as
// texts, as in a CSV file.
template <typename File, typename Column>
class TableScores : public ScoreWriter {
 public:
  TableScores(const std::string& path, const DatasetSchema& schema,
              std::vector<ScoreColumn> columns, std::vector<Column> of_file)
      : schema_(schema), columns_(std::move(columns)), file_(path, std::move(of_file)) {}

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
  const DatasetSchema& schema_;
  const std::vector<ScoreColumn> columns_;
  File file_;
};

// Texts of a key or a vocabulary in another encoding than UTF-8 are bytes.
template <typename Column>
Column ColumnOfFile(const ScoreColumn& column) {
  using Type = typename Column::Type;
  return {column.name, column.is_float()     ? Type::kFloat
                       : column.is_integer() ? Type::kInt64
                       : column.is_utf8()    ? Type::kText
                                             : Type::kBytes};
}

std::unique_ptr<ScoreWriter> MakeCsv(const std::string& path, const Dataset& dataset, RowRange,
                                     std::vector<ScoreColumn> columns,
                                     const std::vector<std::string>& names) {
  return std::make_unique<CsvScores>(path, dataset.schema(), std::move(columns), names);
}

std::unique_ptr<ScoreWriter> MakeParquet(const std::string& path, const Dataset& dataset, RowRange,
                                         std::vector<ScoreColumn> columns,
                                         const std::vector<std::string>& names) {
  std::vector<ParquetColumn> all;
  for (const ScoreColumn& column : columns) all.push_back(ColumnOfFile<ParquetColumn>(column));
  for (const std::string& name : names) all.push_back({name, ParquetColumn::Type::kFloat});
  return std::make_unique<TableScores<ParquetWriter, ParquetColumn>>(
      path, dataset.schema(), std::move(columns), std::move(all));
}

// Without columns an array of numbers, with columns a structured one.
std::unique_ptr<ScoreWriter> MakeNpy(const std::string& path, const Dataset& dataset, RowRange rows,
                                     std::vector<ScoreColumn> columns,
                                     const std::vector<std::string>& names) {
  if (columns.empty()) return std::make_unique<NpyScores>(path, names.size());
  std::vector<NpyField> fields;
  for (const ScoreColumn& column : columns) fields.push_back(ColumnOfFile<NpyField>(column));
  SetWidths(dataset, rows, columns, &fields);
  for (const std::string& name : names) fields.push_back({name});
  return std::make_unique<TableScores<NpyTableWriter, NpyField>>(
      path, dataset.schema(), std::move(columns), std::move(fields));
}

constexpr ScoreFormat kFormats[] = {
    {".csv", MakeCsv}, {".npy", MakeNpy}, {".parquet", MakeParquet}};

}  // namespace

const ScoreFormat& ScoreFormatOf(const std::string& path) {
  const auto found =
      std::find_if(std::begin(kFormats), std::end(kFormats),
                   [&](const ScoreFormat& format) { return path.ends_with(format.extension); });
  if (found == std::end(kFormats))
    Fail(ErrorCode::kUsage, "--output {}: the name must end in .csv, .npy or .parquet", path);
  return *found;
}

}  // namespace renzan
