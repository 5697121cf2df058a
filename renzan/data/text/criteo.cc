#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "renzan/base/config/config.h"
#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/data/text/row_parser.h"

namespace renzan {
namespace {

constexpr size_t kNumDense = 13, kNumCategorical = 26;
constexpr size_t kNumColumns = 1 + kNumDense + kNumCategorical;
constexpr char kAdvice[] =
    "a file in another format than Criteo's needs --format csv --schema FILE, and `renzan data "
    "schema` proposes the schema";
constexpr int64_t kMaxCachedLog = 4096;

constexpr std::array<bool, 256> kIsHex = [] {
  std::array<bool, 256> table{};
  for (char c : std::string_view("0123456789abcdefABCDEF"))
    table[static_cast<unsigned char>(c)] = true;
  return table;
}();

class CriteoParser : public RowParser {
 public:
  CriteoParser(bool log_dense, Labels labels) : log_dense_(log_dense), labels_(labels) {
    schema_.label = "label";
    for (size_t i = 1; i <= kNumDense; ++i) schema_.dense.push_back(fmt::format("I{}", i));
    schema_.dense_transforms.assign(kNumDense, log_dense ? "log" : "none");
    for (size_t i = 1; i <= kNumCategorical; ++i)
      schema_.categorical.push_back({.name = fmt::format("C{}", i)});
    schema_.parsing[schema_.label] = kPlainParsing;
    for (const std::string& name : schema_.dense) schema_.parsing[name] = kPlainParsing;
    for (const CategoricalFeature& feature : schema_.categorical)
      schema_.parsing[feature.name] = kPlainParsing;
    for (int64_t x = 0; x < kMaxCachedLog; ++x)
      small_logs_.push_back(LogTransform(static_cast<double>(x)));
  }

  void Begin(LineReader& lines) override {
    has_line_ = lines.Next(&line_);
    if (labels_ == Labels::kRequired || !has_line_ || Split(line_) != kNumColumns - 1) return;
    schema_.parsing.erase(schema_.label);
    schema_.label.clear();
    first_field_ = 1;
  }
  const DatasetSchema& schema() const override { return schema_; }

  std::string SplitBy(const std::string& column) override {
    std::vector<std::string> names = {schema_.label};
    names.insert(names.end(), schema_.dense.begin(), schema_.dense.end());
    for (const CategoricalFeature& feature : schema_.categorical) names.push_back(feature.name);
    const auto found = std::find(names.begin(), names.end(), column);
    if (found == names.end()) FailNoSplitColumn(column, names);
    split_ = static_cast<size_t>(found - names.begin());
    return "";
  }

  Result Next(LineReader& lines, TextRow* row, BadRow* bad) override {
    if (!has_line_ && !lines.Next(&line_)) return Result::kEnd;
    has_line_ = false;
    *bad = {.line = lines.line_number()};
    const size_t columns = Split(line_), wanted = kNumColumns - first_field_;
    if (schema_.has_labels() && columns == kNumColumns - 1)
      Fail(ErrorCode::kData,
           "{}:{}: {} instead of {}: this looks like a Criteo file without labels "
           "(test.txt), which cannot be used for training or evaluation; {}",
           lines.file(), lines.line_number(), Counted(columns, "column"), kNumColumns,
           kUnlabelledAdvice);
    if (columns != wanted) {
      *bad = {bad->line, 0, "",
              fmt::format("{} separated by tabs instead of {}", Counted(columns, "column"), wanted),
              lines.line_number() == 1 ? kAdvice : ""};
      return Result::kBadRow;
    }
    return ParseFields(row, bad) ? Result::kRow : Result::kBadRow;
  }

 private:
  // Counts all columns, stores those up to the last of kNumColumns; without labels, from the second
  // place on.
  size_t Split(std::string_view line) {
    size_t count = 0;
    const char* begin = line.data();
    const char* const end = begin + line.size();
    for (const char* at = begin;; ++at) {
      if (at != end && *at != '\t') continue;
      if (first_field_ + count < kNumColumns)
        fields_[first_field_ + count] = {begin, static_cast<size_t>(at - begin)};
      ++count;
      if (at == end) return count;
      begin = at + 1;
    }
  }

  bool ParseFields(TextRow* row, BadRow* bad) {
    if (schema_.has_labels()) {
      const std::string_view label = fields_[0];
      if (label.empty() && labels_ == Labels::kMayBeMissing) bad->advice = kEmptyLabelAdvice;
      if (label != "0" && label != "1") return Reject(0, "is not 0 or 1", bad);
      row->label = label == "1" ? 1.0f : 0.0f;
    }
    if (split_ < kNumColumns) row->split = fields_[split_];
    row->dense.resize(kNumDense);
    for (size_t d = 0; d < kNumDense; ++d) {
      const std::string_view field = fields_[1 + d];
      int64_t value = 0;
      if (!field.empty()) {
        const auto [stop, error] = std::from_chars(field.begin(), field.end(), value);
        if (error != std::errc() || stop != field.end())
          return Reject(1 + d, "is not a whole number", bad);
      }
      row->dense[d] = log_dense_ ? Log(value) : static_cast<float>(value);
    }
    row->one_hot.resize(kNumCategorical);
    for (size_t c = 0; c < kNumCategorical; ++c) {
      const std::string_view field = fields_[1 + kNumDense + c];
      bool hex = true;
      for (char digit : field) hex &= kIsHex[static_cast<unsigned char>(digit)];
      if (!hex) return Reject(1 + kNumDense + c, "is not hexadecimal", bad);
      row->one_hot[c] = field;
    }
    return true;
  }

  float Log(int64_t value) const {
    if (value <= 0) return 0.0f;
    if (value < kMaxCachedLog) return small_logs_[static_cast<size_t>(value)];
    return LogTransform(static_cast<double>(value));
  }

  bool Reject(size_t column, const char* problem, BadRow* bad) const {
    bad->column = column + 1 - first_field_;
    bad->name = column == 0           ? schema_.label
                : column <= kNumDense ? schema_.dense[column - 1]
                                      : schema_.categorical[column - 1 - kNumDense].name;
    bad->reason = fmt::format("'{}' {}", Escape(ShortText(fields_[column], 40)), problem);
    return false;
  }

  DatasetSchema schema_;
  bool log_dense_;
  const Labels labels_;
  size_t split_ = kNumColumns;  // the column of SplitBy()
  size_t first_field_ = 0;      // 1: the label is missing
  std::string_view line_;       // the one at hand
  bool has_line_ = false;       // it was read ahead
  std::vector<float> small_logs_;
  std::array<std::string_view, kNumColumns> fields_;
};

}  // namespace

void FailNoSplitColumn(const std::string& column, const std::vector<std::string>& names) {
  const std::string nearest = NearestName(column, names);
  Fail(ErrorCode::kUsage, "--split: there is no column '{}'{}", Escape(column),
       nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest));
}

float LogTransform(double x) { return static_cast<float>(std::log(std::max(x, 0.0) + 1.0)); }

std::unique_ptr<RowParser> MakeCriteoParser(bool log_dense, Labels labels) {
  return std::make_unique<CriteoParser>(log_dense, labels);
}

}  // namespace renzan
