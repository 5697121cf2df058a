#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/base/config/config.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/data/text/bag.h"
#include "renzan/data/text/csv_record.h"
#include "renzan/data/text/csv_schema.h"
#include "renzan/data/text/label_rule.h"
#include "renzan/data/text/parse_number.h"
#include "renzan/data/text/row_parser.h"

namespace renzan {
namespace {

class CsvParser : public RowParser {
 public:
  explicit CsvParser(const std::string& schema_path)
      : schema_path_(schema_path),
        csv_(CsvSchema::ReadFile(schema_path)),
        records_(csv_.delimiter[0], csv_.quotes, csv_.trim) {
    for (const CsvColumn& column : csv_.columns) {
      size_t slot = 0;
      if (column.role == "label") {
        schema_.label = column.name;
        schema_.label_rule = column.label.text();
      } else if (column.role == "dense") {
        slot = schema_.dense.size();
        schema_.dense.push_back(column.name);
        schema_.dense_transforms.push_back(column.transform);
      } else if (column.role == "categorical" || column.role == "multi_hot") {
        const bool multi_hot = column.role == "multi_hot";
        slot = multi_hot ? num_multi_hot_++ : num_one_hot_++;
        schema_.categorical.push_back({.name = column.name, .multi_hot = multi_hot});
        unseen_shares_.push_back(column.unseen);
      }
      if (column.role != "skip") schema_.parsing[column.name] = csv_.ParsingOf(column);
      slots_.push_back(slot);
      order_.push_back(order_.size());
    }
  }

  const DatasetSchema& schema() const override { return schema_; }
  std::vector<double> unseen_shares() const override { return unseen_shares_; }

  Result Next(LineReader& lines, TextRow* row, BadRow* bad) override {
    std::string problem;
    for (;;) {
      *bad = {};
      if (!records_.Next(lines, &bad->line, &problem)) return Result::kEnd;
      const bool file_begins = lines.file_index() != file_index_;
      file_index_ = lines.file_index();
      if (file_begins && csv_.header) {
        ReadHeader(lines.file(), problem);
        continue;
      }
      // An empty line is not a row, unless rows have a single field.
      if (records_.fields().size() == 1 && records_.fields()[0].empty() && order_.size() > 1)
        continue;
      break;
    }
    bad->reason = problem;
    if (problem.empty() && ParseFields(row, bad)) return Result::kRow;
    records_.RejectRecord();
    return Result::kBadRow;
  }

 private:
  // Finds each column of this file in the schema: files may differ in order.
  void ReadHeader(const std::string& file, const std::string& problem) {
    if (!problem.empty()) Fail(ErrorCode::kData, "{}:1: bad header: {}", file, problem);
    std::vector<std::string> names;
    for (const CsvColumn& column : csv_.columns) names.push_back(column.name);
    order_.clear();
    for (std::string_view field : records_.fields()) {
      const auto found = std::find(names.begin(), names.end(), field);
      if (found == names.end()) {
        const std::string nearest = NearestName(field, names);
        Fail(ErrorCode::kConfig,
             "{}:1: column {} '{}' is not in {}{}; give an unwanted column the role skip; for a "
             "file without a header line set header: false",
             file, order_.size() + 1, Escape(field), schema_path_,
             nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest));
      }
      const auto index = static_cast<size_t>(found - names.begin());
      if (std::find(order_.begin(), order_.end(), index) != order_.end())
        Fail(ErrorCode::kData, "{}:1: column '{}' appears twice", file, Escape(field));
      order_.push_back(index);
    }
    for (size_t i = 0; i < names.size(); ++i)
      if (std::find(order_.begin(), order_.end(), i) == order_.end())
        Fail(ErrorCode::kConfig, "{}:1: the header has no column '{}', which {} declares", file,
             names[i], schema_path_);
  }

  bool ParseFields(TextRow* row, BadRow* bad) const {
    const std::vector<std::string_view>& fields = records_.fields();
    if (fields.size() != order_.size()) {
      bad->reason = fmt::format("{} fields instead of {}", fields.size(), order_.size());
      return false;
    }
    row->line = bad->line;
    row->num_lines = records_.num_lines();
    row->dense.resize(schema_.dense.size());
    row->one_hot.resize(num_one_hot_);
    row->multi_hot.resize(num_multi_hot_);
    for (size_t i = 0; i < order_.size(); ++i) {
      if (ParseField(order_[i], fields[i], row, bad)) continue;
      bad->column = i + 1;
      bad->name = csv_.columns[order_[i]].name;
      return false;
    }
    return true;
  }

  bool ParseField(size_t index, std::string_view field, TextRow* row, BadRow* bad) const {
    const CsvColumn& column = csv_.columns[index];
    if (column.role == "skip") return true;
    if (IsMissing(field)) field = {};
    if (column.role == "label") return ParseLabel(column.label, field, row, bad);
    if (column.role == "dense") return ParseDense(column, field, &row->dense[slots_[index]], bad);
    if (column.role == "categorical") {
      row->one_hot[slots_[index]] = field;
      return true;
    }
    std::vector<std::string_view>& bag = row->multi_hot[slots_[index]];
    bag.clear();
    const std::string problem = SplitBag(
        field,
        {.separator = column.bag_separator(), .trim = csv_.trim, .brackets = column.brackets},
        [this](std::string_view value) { return IsMissing(value); }, &bag);
    return problem.empty() || Reject(field, problem, bad);
  }

  bool IsMissing(std::string_view field) const {
    return std::find(csv_.missing.begin(), csv_.missing.end(), field) != csv_.missing.end();
  }

  static bool Reject(std::string_view field, std::string_view problem, BadRow* bad) {
    bad->reason = fmt::format("'{}' {}", Escape(field.substr(0, 40)), problem);
    return false;
  }

  static bool ParseLabel(const LabelRule& rule, std::string_view field, TextRow* row, BadRow* bad) {
    bool is_other = false;
    const std::string problem = rule.Parse(field, &row->label, &is_other);
    row->other_label = is_other ? field : std::string_view();
    return problem.empty() || Reject(field, problem, bad);
  }

  static bool ParseDense(const CsvColumn& column, std::string_view field, float* dense,
                         BadRow* bad) {
    *dense = 0;
    if (field.empty()) return true;
    const std::optional<double> value = ParseNumber(field);
    if (!value) return Reject(field, "is not a number", bad);
    *dense = column.transform == "log" ? LogTransform(*value) : static_cast<float>(*value);
    if (std::isfinite(*value) && std::isfinite(*dense)) return true;
    return Reject(field, "is not a finite number", bad);
  }

  std::string schema_path_;
  CsvSchema csv_;
  CsvRecordReader records_;
  DatasetSchema schema_;
  std::vector<double> unseen_shares_;  // of schema_.categorical
  size_t num_one_hot_ = 0, num_multi_hot_ = 0;
  std::vector<size_t> slots_;  // by column: index in the row's vector for its role
  std::vector<size_t> order_;  // field i of a record is column order_[i]
  size_t file_index_ = static_cast<size_t>(-1);
};

}  // namespace

std::unique_ptr<RowParser> MakeCsvParser(const std::string& schema_path) {
  return std::make_unique<CsvParser>(schema_path);
}

}  // namespace renzan
