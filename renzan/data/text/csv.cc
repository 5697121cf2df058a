#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/base/config/config.h"
#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/log.h"
#include "renzan/data/text/column_fields.h"
#include "renzan/data/text/csv_delimiter.h"
#include "renzan/data/text/csv_record.h"
#include "renzan/data/text/csv_schema.h"
#include "renzan/data/text/row_parser.h"

namespace renzan {
namespace {

constexpr const char* kSeparateDatasets =
    "import files with and without it into datasets of their own";

class CsvParser : public RowParser {
 public:
  CsvParser(const std::string& schema_path, Labels labels)
      : schema_path_(schema_path),
        fields_(CsvSchema::ReadFile(schema_path), schema_path, labels),
        csv_(fields_.csv()),
        records_(csv_.delimiter, csv_.quotes, csv_.trim) {}

  void Begin(LineReader& lines) override {
    std::string problem;
    int64_t line = 0;
    if (csv_.header && records_.Next(lines, &line, &problem)) {
      CheckHeader(lines.file(), problem);
      const std::vector<std::string> names(records_.fields().begin(), records_.fields().end());
      fields_.Begin(&names);
      ReadHeader(lines.file());
      file_index_ = lines.file_index();
    } else {
      fields_.Begin(nullptr);
      for (size_t i = 0; i < csv_.columns.size(); ++i) order_.push_back(i);
    }
  }

  const DatasetSchema& schema() const override { return fields_.schema(); }
  std::vector<double> unseen_shares() const override { return fields_.unseen_shares(); }
  std::vector<std::string> keys() const override { return fields_.keys(); }

  std::string SplitBy(const std::string& column) override { return fields_.SplitBy(column); }

  Result Next(LineReader& lines, TextRow* row, BadRow* bad) override {
    std::string problem;
    for (;;) {
      *bad = {};
      if (!records_.Next(lines, &bad->line, &problem)) return Result::kEnd;
      const bool file_begins = lines.file_index() != file_index_;
      file_index_ = lines.file_index();
      if (file_begins && csv_.header) {
        CheckHeader(lines.file(), problem);
        ReadHeader(lines.file());
        continue;
      }
      // An empty line is not a row, unless rows have a single field.
      if (records_.fields().size() == 1 && records_.fields()[0].empty() && order_.size() > 1)
        continue;
      break;
    }
    if (problem.empty() && ParseFields(row, bad)) {
      fields_.HasReadRow();
      return Result::kRow;
    }
    if (!problem.empty()) {
      bad->reason = problem;
      bad->advice = AdviceOnQuotes(order_.size());
    }
    if (!csv_.header && bad->line == 1 && HoldsNames())
      bad->advice =
          fmt::format("the line holds the columns' names: set header: true in {}", schema_path_);
    records_.RejectRecord(lines, [&] {
      BadRow not_a_row;
      return ParseFields(row, &not_a_row);
    });
    return Result::kBadRow;
  }

 private:
  bool HeaderHas(std::string_view name) const {
    const std::vector<std::string_view>& fields = records_.fields();
    return std::find(fields.begin(), fields.end(), name) != fields.end();
  }

  bool IsName(std::string_view field) const {
    return std::any_of(csv_.columns.begin(), csv_.columns.end(),
                       [&](const CsvColumn& column) { return column.name == field; });
  }
  bool HoldsNames() const {
    const std::vector<std::string_view>& fields = records_.fields();
    return !fields.empty() && std::all_of(fields.begin(), fields.end(),
                                          [&](std::string_view field) { return IsName(field); });
  }

  // What to do if another delimiter gives the record so many fields, or "". Once a row was read,
  // the delimiter is right.
  std::string AdviceOnDelimiter(size_t num_fields) const {
    if (fields_.has_read_row()) return "";
    const std::string delimiter = DelimiterThatFits(
        records_.line(), [&](const auto& fields) { return fields.size() == num_fields; });
    if (num_fields < 2 || delimiter.empty() || delimiter == csv_.delimiter) return "";
    return fmt::format("with {} in {} there are {}", DelimiterInSchema(delimiter), schema_path_,
                       num_fields);
  }

  std::string AdviceOnQuotes(size_t num_fields) const {
    const std::string advice = AdviceOnDelimiter(num_fields);
    return advice.empty()
               ? fmt::format("if quotes enclose nothing in this file, set quotes: false in {}",
                             schema_path_)
               : advice;
  }

  // Whether the first record can be a header, with these delimiters and quotes.
  void CheckHeader(const std::string& file, const std::string& problem) const {
    if (problem.empty() && (records_.fields().size() > 1 || HoldsNames())) return;
    const std::string delimiter = DelimiterThatFits(records_.line(), [&](const auto& fields) {
      return fields.size() > 1 && std::any_of(fields.begin(), fields.end(), [&](auto field) {
               return IsName(TrimBlanks(field));
             });
    });
    if (!delimiter.empty() && delimiter != csv_.delimiter)
      Fail(ErrorCode::kConfig,
           "{}:1: the header has columns of {}, but another delimiter than there: set {}", file,
           schema_path_, DelimiterInSchema(delimiter));
    if (!problem.empty())
      Fail(ErrorCode::kData, "{}:1: bad header: {}; {}", file, problem, AdviceOnQuotes(0));
  }

  // Finds each column of this file in the schema: files may differ in order.
  void ReadHeader(const std::string& file) {
    std::vector<std::string> names;
    for (const CsvColumn& column : csv_.columns) names.push_back(column.name);
    order_.clear();
    for (std::string_view field : records_.fields()) {
      const auto found = std::find(names.begin(), names.end(), field);
      if (found == names.end() && field.empty()) {
        SkipUnnamed(file);
        continue;
      }
      if (found == names.end()) {
        const std::string nearest = NearestName(field, NamesWithoutColumn());
        Fail(ErrorCode::kConfig,
             "{}:1: column {} '{}' is not in {}{}; give an unwanted column the role skip; for a "
             "file without a header line set header: false{}",
             file, order_.size() + 1, Escape(field), schema_path_,
             nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest),
             records_.fields().size() == 1 && names.size() > 1
                 ? "; it is the only column: check the delimiter"
                 : "");
      }
      const auto index = static_cast<size_t>(found - names.begin());
      if (fields_.is_absent(index))
        Fail(ErrorCode::kConfig, "{}:1: has the {} '{}', which the first file lacks: {}", file,
             csv_.columns[index].role, Escape(field), kSeparateDatasets);
      if (std::find(order_.begin(), order_.end(), index) != order_.end())
        Fail(ErrorCode::kData, "{}:1: column '{}' appears twice", file, Escape(field));
      order_.push_back(index);
    }
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i].empty() || std::find(order_.begin(), order_.end(), i) != order_.end()) continue;
      if (fields_.is_absent(i)) continue;
      const CsvColumn& column = csv_.columns[i];
      if (fields_.MayBeAbsent(column))
        Fail(ErrorCode::kConfig, "{}:1: lacks the {} '{}', which the first file has: {}", file,
             column.role, names[i], kSeparateDatasets);
      Fail(ErrorCode::kConfig, "{}:1: the header has no column '{}', which {} declares{}", file,
           names[i], schema_path_,
           column.role == "label" ? fmt::format("; {}", kUnlabelledAdvice)
           : column.is_bag_weights()
               ? ": remove it there, or add it to the file, with a number for each value of its bag"
               : ": remove it there, or add it to the file, with empty fields if need be");
    }
  }

  // Those of the schema's columns that the header does not have.
  std::vector<std::string> NamesWithoutColumn() const {
    std::vector<std::string> names;
    for (const CsvColumn& column : csv_.columns)
      if (!HeaderHas(column.name)) names.push_back(column.name);
    return names;
  }

  // pandas writes its index as a first column without a name.
  void SkipUnnamed(const std::string& file) {
    if (!order_.empty())
      Fail(ErrorCode::kConfig,
           "{}:1: column {} has no name: name it in the file, or give it the role skip (\"\": "
           "{{role: "
           "skip}}) in {}",
           file, order_.size() + 1, schema_path_);
    LogWarning("{}: column 1 has no name, as pandas writes its index, and is skipped", file);
    order_.push_back(kUnnamed);
  }

  bool ParseFields(TextRow* row, BadRow* bad) {
    const std::vector<std::string_view>& fields = records_.fields();
    if (fields.size() != order_.size()) {
      bad->reason = fmt::format("{} instead of {}", Counted(fields.size(), "field"), order_.size());
      bad->advice = AdviceOnDelimiter(order_.size());
      return false;
    }
    row->line = bad->line;
    row->num_lines = records_.num_lines();
    fields_.Prepare(row);
    fields_.BeginRow(row);
    for (size_t i = 0; i < order_.size(); ++i) {
      if (order_[i] == kUnnamed || fields_.ParseField(order_[i], fields[i], row, bad)) continue;
      bad->column = i + 1;
      bad->name = csv_.columns[order_[i]].name;
      return false;
    }
    return fields_.HasLabel(*row, bad);
  }

  std::string schema_path_;
  ColumnFields fields_;
  const CsvSchema& csv_;
  CsvRecordReader records_;
  std::vector<size_t> order_;  // field i of a record is column order_[i]
  static constexpr size_t kUnnamed = static_cast<size_t>(-1);  // in order_: not in the schema
  size_t file_index_ = static_cast<size_t>(-1);
};

}  // namespace

std::unique_ptr<RowParser> MakeCsvParser(const std::string& schema_path, Labels labels) {
  return std::make_unique<CsvParser>(schema_path, labels);
}

}  // namespace renzan
