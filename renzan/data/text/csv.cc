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
#include "renzan/data/dense_transform.h"
#include "renzan/data/text/bag.h"
#include "renzan/data/text/csv_delimiter.h"
#include "renzan/data/text/csv_record.h"
#include "renzan/data/text/csv_schema.h"
#include "renzan/data/text/date.h"
#include "renzan/data/text/label_rule.h"
#include "renzan/data/text/parse_number.h"
#include "renzan/data/text/row_parser.h"

namespace renzan {
namespace {

constexpr const char* kSeparateDatasets =
    "import files with and without it into datasets of their own";

class CsvParser : public RowParser {
 public:
  CsvParser(const std::string& schema_path, Labels labels)
      : schema_path_(schema_path),
        labels_(labels),
        csv_(CsvSchema::ReadFile(schema_path)),
        records_(csv_.delimiter, csv_.quotes, csv_.trim) {
    if (labels_ == Labels::kRequired && csv_.label() == nullptr)
      Fail(ErrorCode::kConfig, "{}: no column has the role label; {}", schema_path,
           kUnlabelledAdvice);
    schema_.negatives_kept = csv_.negatives_kept;
  }

  void Begin(LineReader& lines) override {
    std::string problem;
    int64_t line = 0;
    if (csv_.header && records_.Next(lines, &line, &problem)) {
      CheckHeader(lines.file(), problem);
      csv_.ExpandPatterns({records_.fields().begin(), records_.fields().end()}, schema_path_);
      for (const CsvColumn& column : csv_.columns)
        absent_.push_back(MayBeAbsent(column) && !HeaderHas(column.name));
      SetColumns();
      ReadHeader(lines.file());
      file_index_ = lines.file_index();
    } else {
      absent_.assign(csv_.columns.size(), false);
      SetColumns();
    }
  }

  const DatasetSchema& schema() const override { return schema_; }
  std::vector<double> unseen_shares() const override { return unseen_shares_; }
  std::vector<std::string> keys() const override { return keys_; }

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
      has_read_row_ = true;
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
  void SetColumns() {
    for (const CsvColumn& column : csv_.columns) {
      Date date{.format = DateFormat(column.date)};
      for (const CsvColumn& part : column.parts) {
        date.slots.push_back(
            AddFeature(part, column.name + "." + part.name, csv_.ParsingOf(column)));
        date.texts.emplace_back();
      }
      dates_.push_back(std::move(date));
      const bool is_key = column.is_key() && !absent_[slots_.size()];
      key_slots_.push_back(is_key ? keys_.size() : kNoKey);
      if (is_key) keys_.push_back(column.name);
      slots_.push_back(
          absent_[slots_.size()] ? 0 : AddFeature(column, column.name, csv_.ParsingOf(column)));
      order_.push_back(order_.size());
    }
  }

  // Returns its index in the row's vector for its role.
  size_t AddFeature(const CsvColumn& column, const std::string& name, const std::string& parsing) {
    if (column.role == "skip" || column.role == "key" || column.role == "date") return 0;
    schema_.parsing[name] = parsing;
    if (column.role == "weight") {
      schema_.weight = name;
      return 0;
    }
    if (column.role == "label") {
      schema_.label = name;
      schema_.label_rule = column.label.text();
      return 0;
    }
    if (column.role == "dense") {
      transforms_.push_back(*DenseTransform::Parse(column.dense_transform()));
      schema_.dense.push_back(name);
      schema_.dense_transforms.push_back(transforms_.back().text());
      unscaled_slots_.push_back(num_unscaled_);
      num_unscaled_ += transforms_.back().needs_constants();
      return transforms_.size() - 1;
    }
    const bool multi_hot = column.role == "multi_hot";
    schema_.categorical.push_back({.name = name, .multi_hot = multi_hot});
    unseen_shares_.push_back(column.unseen);
    return multi_hot ? num_multi_hot_++ : num_one_hot_++;
  }

  // What only training and evaluation read. If the first file lacks it, so must the others.
  bool MayBeAbsent(const CsvColumn& column) const {
    return labels_ == Labels::kMayBeMissing && (column.role == "label" || column.role == "weight");
  }

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
    if (has_read_row_) return "";
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
      if (absent_[index])
        Fail(ErrorCode::kConfig, "{}:1: has the {} '{}', which the first file lacks: {}", file,
             csv_.columns[index].role, Escape(field), kSeparateDatasets);
      if (std::find(order_.begin(), order_.end(), index) != order_.end())
        Fail(ErrorCode::kData, "{}:1: column '{}' appears twice", file, Escape(field));
      order_.push_back(index);
    }
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i].empty() || std::find(order_.begin(), order_.end(), i) != order_.end()) continue;
      if (absent_[i]) continue;
      const CsvColumn& column = csv_.columns[i];
      if (MayBeAbsent(column))
        Fail(ErrorCode::kConfig, "{}:1: lacks the {} '{}', which the first file has: {}", file,
             column.role, names[i], kSeparateDatasets);
      Fail(ErrorCode::kConfig, "{}:1: the header has no column '{}', which {} declares{}", file,
           names[i], schema_path_,
           column.role == "label"
               ? fmt::format("; {}", kUnlabelledAdvice)
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
    row->dense.resize(schema_.dense.size());
    row->unscaled.resize(num_unscaled_);
    row->one_hot.resize(num_one_hot_);
    row->multi_hot.resize(num_multi_hot_);
    row->keys.resize(keys_.size());
    for (size_t i = 0; i < order_.size(); ++i) {
      if (order_[i] == kUnnamed || ParseField(order_[i], fields[i], row, bad)) continue;
      bad->column = i + 1;
      bad->name = csv_.columns[order_[i]].name;
      return false;
    }
    return true;
  }

  bool ParseField(size_t index, std::string_view field, TextRow* row, BadRow* bad) {
    const CsvColumn& column = csv_.columns[index];
    if (key_slots_[index] != kNoKey) row->keys[key_slots_[index]] = field;
    if (column.role == "skip" || column.role == "key") return true;
    if (IsMissing(column, field)) field = {};
    if (column.role == "label") return ParseLabel(column.label, field, row, bad);
    if (column.role == "weight") return ParseWeight(field, row, bad);
    if (column.role == "date") return ParseDate(index, field, row, bad);
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
    if (problem.empty()) return true;
    Suggest(
        "if the column's lists are written otherwise, correct its 'brackets' or 'separator' in "
        "the schema",
        bad);
    return Reject(field, problem, bad);
  }

  static bool IsMissing(const CsvColumn& column, std::string_view field) {
    return std::find(column.missing.begin(), column.missing.end(), field) != column.missing.end();
  }

  static bool Reject(std::string_view field, std::string_view problem, BadRow* bad) {
    bad->reason = fmt::format("'{}' {}", Escape(ShortText(field, 40)), problem);
    return false;
  }

  // Until a row was read, what is wrong may be the schema rather than the row.
  void Suggest(std::string_view change, BadRow* bad) const {
    if (!has_read_row_) bad->alternative = change;
  }

  bool ParseLabel(const LabelRule& rule, std::string_view field, TextRow* row, BadRow* bad) const {
    bool is_other = false;
    const std::string problem = rule.Parse(field, &row->label, &is_other);
    row->other_label = is_other ? field : std::string_view();
    if (problem.empty()) return true;
    if (field.empty() && labels_ == Labels::kMayBeMissing) bad->advice = kEmptyLabelAdvice;
    if (!field.empty())
      Suggest("if the labels are written otherwise, correct the label's rule in the schema", bad);
    if (!field.empty() && !rule.positive.empty())
      bad->alternative = fmt::format(
          "'negative: other' in the schema would count this and every other text but '{}' as a "
          "negative",
          rule.positive);
    return Reject(field, problem, bad);
  }

  bool ParseWeight(std::string_view field, TextRow* row, BadRow* bad) const {
    const std::optional<double> value = ParseNumber(field);
    row->weight = static_cast<float>(value.value_or(-1)) + 0.0f;  // no -0
    if (std::isfinite(row->weight) && row->weight >= 0) return true;
    Suggest("if the column weighs no samples, give it another role in the schema", bad);
    return Reject(field, "is not a weight: it must be a finite number from 0 on", bad);
  }

  bool ParseDense(size_t slot, std::string_view field, TextRow* row, BadRow* bad) const {
    std::optional<double> value;
    if (!field.empty()) {
      value = ParseNumber(field);
      if (!value) {
        Suggest(
            "if the column holds no numbers, give it another role in the schema: categorical, "
            "multi_hot, date, key or skip",
            bad);
        return Reject(field, "is not a number", bad);
      }
    }
    return SetDense(slot, value, row) || Reject(field, "is not a finite number", bad);
  }

  // Returns false for a number that is not finite. No number means missing.
  bool SetDense(size_t slot, std::optional<double> value, TextRow* row) const {
    const DenseTransform& transform = transforms_[slot];
    float& dense = row->dense[slot];
    dense = 0;
    if (transform.needs_constants()) {
      row->unscaled[unscaled_slots_[slot]] =
          value.value_or(std::numeric_limits<double>::quiet_NaN());
      return !value || std::isfinite(static_cast<float>(*value));
    }
    dense = value ? transform.Apply(*value) : transform.OfMissing();
    if (!value) return true;
    return std::isfinite(*value) && std::isfinite(dense);
  }

  // For what is not a number of whole seconds since 1970, or "".
  static std::string AdviceOnSeconds(std::string_view field) {
    const std::optional<double> number = ParseNumber(field);
    if (!number) return "";
    return *number == std::floor(*number)
               ? "%s counts seconds: %Q counts milliseconds; divide microseconds by 1000 for it"
               : "with parts of a second, the format is %s.%f";
  }

  bool ParseDate(size_t index, std::string_view field, TextRow* row, BadRow* bad) {
    Date& date = dates_[index];
    std::optional<DateParts> parsed;
    if (!field.empty()) {
      parsed = date.format.Parse(field);
      if (!parsed) {
        bad->alternative = "if the format is wrong, correct the column's 'date' in the schema";
        if (date.format.text() == "%s") bad->advice = AdviceOnSeconds(field);
        return Reject(field, fmt::format("is not a date of the format '{}'", date.format.text()),
                      bad);
      }
    }
    const std::vector<CsvColumn>& parts = csv_.columns[index].parts;
    for (size_t i = 0; i < parts.size(); ++i) {
      std::optional<int64_t> value;
      if (parsed)
        value = parts[i].name == "day"       ? parsed->day
                : parts[i].name == "weekday" ? parsed->weekday
                                             : parsed->hour;
      if (parts[i].role == "dense") {
        SetDense(date.slots[i], value, row);
      } else {
        date.texts[i] = value ? fmt::format("{}", *value) : "";
        row->one_hot[date.slots[i]] = date.texts[i];
      }
    }
    return true;
  }

  std::string schema_path_;
  const Labels labels_;
  CsvSchema csv_;
  std::vector<char> absent_;  // by column: whether no file has it (MayBeAbsent)
  CsvRecordReader records_;
  DatasetSchema schema_;
  std::vector<double> unseen_shares_;  // of schema_.categorical
  size_t num_one_hot_ = 0, num_multi_hot_ = 0;
  std::vector<DenseTransform> transforms_;  // of dense features
  std::vector<size_t> unscaled_slots_;      // by dense feature: index in TextRow::unscaled
  size_t num_unscaled_ = 0;
  struct Date {
    DateFormat format;
    std::vector<size_t> slots = {};       // of its parts
    std::vector<std::string> texts = {};  // back the values of categorical ones
  };
  std::vector<Date> dates_;    // by column
  std::vector<size_t> slots_;  // by column: index in the row's vector for its role
  std::vector<std::string> keys_;
  std::vector<size_t> key_slots_;  // by column: index in keys_
  static constexpr size_t kNoKey = static_cast<size_t>(-1);
  std::vector<size_t> order_;  // field i of a record is column order_[i]
  bool has_read_row_ = false;
  static constexpr size_t kUnnamed = static_cast<size_t>(-1);  // in order_: not in the schema
  size_t file_index_ = static_cast<size_t>(-1);
};

}  // namespace

std::unique_ptr<RowParser> MakeCsvParser(const std::string& schema_path, Labels labels) {
  return std::make_unique<CsvParser>(schema_path, labels);
}

}  // namespace renzan
