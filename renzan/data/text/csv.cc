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
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/log.h"
#include "renzan/data/dense_transform.h"
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
        records_(csv_.delimiter, csv_.quotes, csv_.trim) {}

  void Begin(LineReader& lines) override {
    std::string problem;
    int64_t line = 0;
    if (csv_.header && records_.Next(lines, &line, &problem)) {
      csv_.ExpandPatterns({records_.fields().begin(), records_.fields().end()}, schema_path_);
      SetColumns();
      ReadHeader(lines.file(), problem);
      file_index_ = lines.file_index();
    } else {
      SetColumns();
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
  void SetColumns() {
    for (const CsvColumn& column : csv_.columns) {
      size_t slot = 0;
      if (column.role == "label") {
        schema_.label = column.name;
        schema_.label_rule = column.label.text();
      } else if (column.role == "dense") {
        slot = schema_.dense.size();
        schema_.dense.push_back(column.name);
        transforms_.push_back(*DenseTransform::Parse(column.dense_transform()));
        schema_.dense_transforms.push_back(transforms_.back().text());
        unscaled_slots_.push_back(num_unscaled_);
        num_unscaled_ += transforms_.back().needs_constants();
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

  // Finds each column of this file in the schema: files may differ in order.
  void ReadHeader(const std::string& file, const std::string& problem) {
    if (!problem.empty()) Fail(ErrorCode::kData, "{}:1: bad header: {}", file, problem);
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
      if (!names[i].empty() && std::find(order_.begin(), order_.end(), i) == order_.end())
        Fail(ErrorCode::kConfig, "{}:1: the header has no column '{}', which {} declares", file,
             names[i], schema_path_);
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

  bool ParseFields(TextRow* row, BadRow* bad) const {
    const std::vector<std::string_view>& fields = records_.fields();
    if (fields.size() != order_.size()) {
      bad->reason = fmt::format("{} fields instead of {}", fields.size(), order_.size());
      return false;
    }
    row->line = bad->line;
    row->num_lines = records_.num_lines();
    row->dense.resize(schema_.dense.size());
    row->unscaled.resize(num_unscaled_);
    row->one_hot.resize(num_one_hot_);
    row->multi_hot.resize(num_multi_hot_);
    for (size_t i = 0; i < order_.size(); ++i) {
      if (order_[i] == kUnnamed || ParseField(order_[i], fields[i], row, bad)) continue;
      bad->column = i + 1;
      bad->name = csv_.columns[order_[i]].name;
      return false;
    }
    return true;
  }

  bool ParseField(size_t index, std::string_view field, TextRow* row, BadRow* bad) const {
    const CsvColumn& column = csv_.columns[index];
    if (column.role == "skip") return true;
    if (IsMissing(column, field)) field = {};
    if (column.role == "label") return ParseLabel(column.label, field, row, bad);
    if (column.role == "dense") return ParseDense(slots_[index], field, row, bad);
    if (column.role == "categorical") {
      row->one_hot[slots_[index]] = field;
      return true;
    }
    std::vector<std::string_view>& bag = row->multi_hot[slots_[index]];
    bag.clear();
    const std::string problem = SplitBag(
        field,
        {.separator = column.bag_separator(), .trim = csv_.trim, .brackets = column.brackets},
        [&](std::string_view value) { return IsMissing(column, value); }, &bag);
    return problem.empty() || Reject(field, problem, bad);
  }

  static bool IsMissing(const CsvColumn& column, std::string_view field) {
    return std::find(column.missing.begin(), column.missing.end(), field) != column.missing.end();
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

  bool ParseDense(size_t slot, std::string_view field, TextRow* row, BadRow* bad) const {
    const DenseTransform& transform = transforms_[slot];
    float* const dense = &row->dense[slot];
    double* const unscaled =
        transform.needs_constants() ? &row->unscaled[unscaled_slots_[slot]] : nullptr;
    *dense = 0;
    if (unscaled != nullptr) *unscaled = std::numeric_limits<double>::quiet_NaN();
    if (field.empty()) return true;
    const std::optional<double> value = ParseNumber(field);
    if (!value) return Reject(field, "is not a number", bad);
    if (unscaled != nullptr) {
      *unscaled = *value;
      if (std::isfinite(static_cast<float>(*value))) return true;
    } else {
      *dense = transform.Apply(*value);
      if (std::isfinite(*value) && std::isfinite(*dense)) return true;
    }
    return Reject(field, "is not a finite number", bad);
  }

  std::string schema_path_;
  CsvSchema csv_;
  CsvRecordReader records_;
  DatasetSchema schema_;
  std::vector<double> unseen_shares_;  // of schema_.categorical
  size_t num_one_hot_ = 0, num_multi_hot_ = 0;
  std::vector<DenseTransform> transforms_;  // of dense features
  std::vector<size_t> unscaled_slots_;      // by dense feature: index in TextRow::unscaled
  size_t num_unscaled_ = 0;
  std::vector<size_t> slots_;  // by column: index in the row's vector for its role
  std::vector<size_t> order_;  // field i of a record is column order_[i]
  static constexpr size_t kUnnamed = static_cast<size_t>(-1);  // in order_: not in the schema
  size_t file_index_ = static_cast<size_t>(-1);
};

}  // namespace

std::unique_ptr<RowParser> MakeCsvParser(const std::string& schema_path) {
  return std::make_unique<CsvParser>(schema_path);
}

}  // namespace renzan
