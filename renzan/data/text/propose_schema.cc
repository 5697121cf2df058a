#include "renzan/data/text/propose_schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/data/text/column_hints.h"
#include "renzan/data/text/column_kinds.h"
#include "renzan/data/text/csv_delimiter.h"
#include "renzan/data/text/csv_record.h"
#include "renzan/data/text/date.h"
#include "renzan/data/text/label_column.h"
#include "renzan/data/text/table_statistics.h"

namespace renzan {
namespace {

// With more distinct whole numbers, they may be ids.
constexpr size_t kFewIds = 20;

// A part that is the same in all dates says nothing.
std::string DescribeDate(const ColumnStatistics& values) {
  std::vector<std::string> parts;
  for (const std::string& part : values.varying_date_parts())
    parts.push_back(fmt::format("{}: {{role: {}}}", part,
                                part == "day" ? "dense, transform: standardize" : "categorical"));
  if (parts.empty()) return "role: skip";
  return fmt::format("role: date, date: {}, parts: {{{}}}", QuotedForYaml(values.date_format()),
                     fmt::join(parts, ", "));
}

constexpr char kDense[] = "role: dense";

// For a column that is not the label.
std::string DescribeFeature(const Table& table, const Column& column) {
  const ColumnStatistics& values = column.values;
  if (column.name.empty() || values.present() == 0 || IsConstant(values)) return "role: skip";
  if (IsDate(column)) return DescribeDate(values);
  if (const std::string vector = DescribeVector(values, table.dialect.delimiter); !vector.empty())
    return vector;
  if (values.in_brackets()) return "role: multi_hot, brackets: true";
  if (HoldsIds(column) || FillsItsRange(values) || !values.is_number()) {
    if (IsKey(values)) return "role: key";
    if (HasOwnValueInEveryRow(values)) return "role: skip";
    const char separator = values.is_number() ? 0 : values.bag_separator();
    if (separator == 0 || table.dialect.delimiter == std::string(1, separator))
      return "role: categorical";
    return fmt::format("role: multi_hot, separator: {}", QuotedForYaml(std::string(1, separator)));
  }
  if (values.is_whole() && values.distinct() <= kFewNumbers) return "role: categorical";
  const std::string transform = values.spread().HelpfulTransform(0);
  std::string text = kDense;
  if (transform != "none") text += ", transform: " + transform;
  // After standardize, 0, which missing values are, is the mean.
  if (values.missing() > 0 && transform != "standardize") text += ", fill: mean";
  return text;
}

std::string CommentOn(const Column& column) {
  const ColumnStatistics& values = column.values;
  constexpr size_t kShown = 3;
  if (values.present() == 0) return "no values";
  if (IsConstant(values))
    return "constant: " + Escape(ShortText(values.MostFrequent(1)[0].first, kShownBytes));
  std::string text = values.is_number()
                         ? fmt::format("numbers from {} to {}", values.min(), values.max())
                         : "text";
  text += fmt::format(", {}{} {}", values.distinct(), values.many_distinct() ? " or more" : "",
                      values.distinct() == 1 ? "value" : "values");
  if (HasOwnValueInEveryRow(values)) text += ", a different one in (nearly) every row";
  if (values.missing() > 0)
    text += fmt::format(", {:.3g} % missing", 100 * static_cast<double>(values.missing()) /
                                                  static_cast<double>(values.rows()));
  std::vector<std::string> shown;
  for (const auto& [value, count] : values.MostFrequent(kShown))
    shown.push_back(fmt::format("{} ({:.3g} %)", Escape(ShortText(value, kShownBytes)),
                                100 * static_cast<double>(count) /
                                    static_cast<double>(std::max<int64_t>(values.rows(), 1))));
  if (!values.is_number() || values.distinct() <= kFewNumbers)
    text += fmt::format(": {}", fmt::join(shown, ", "));
  if (IsDate(column)) {
    const DateFormat format(values.date_format());
    const std::vector<std::string> varying = values.varying_date_parts();
    std::vector<std::string> constant;
    for (const std::string part : {"day", "weekday", "hour"})
      if ((part == "hour" ? format.has_hour() : format.has_day()) &&
          std::find(varying.begin(), varying.end(), part) == varying.end())
        constant.push_back(part);
    if (!constant.empty()) text += fmt::format("; constant: {}", fmt::join(constant, ", "));
  }
  return text;
}

// What else a feature's column may be.
std::vector<std::string> HintsOnFeature(const Table& table, const Column& column,
                                        const std::string& description) {
  static constexpr std::string_view kWeights[] = {"weight", "weights", "sample_weight",
                                                  "sampleweight", "importance"};
  const ColumnStatistics& values = column.values;
  if (values.distinct() < 2 || column.name.empty()) return {};
  if (description.starts_with("role: date")) {
    const std::string other = values.date_format_with_day_first();
    if (other.empty()) return {};
    return {fmt::format("if the day comes first: date: {}", QuotedForYaml(other))};
  }
  if (description.starts_with("role: multi_hot")) {
    if (values.in_brackets()) return {};
    return {fmt::format("values separated by '{}'", values.bag_separator())};
  }
  if (IsDate(column)) return {};  // all of whose parts are constant
  if (description.starts_with("role: dense, dimension")) return {};
  std::vector<std::string> hints;
  const bool is_dense = description.starts_with(kDense);
  if (is_dense && values.is_whole() && values.min() >= 0 && values.distinct() > kFewIds)
    hints.emplace_back("if they are ids: {role: categorical}");
  if (values.is_number() && values.min() >= 0 &&
      std::find(std::begin(kWeights), std::end(kWeights), Lower(column.name)) != std::end(kWeights))
    hints.emplace_back("if it weighs the samples: {role: weight}");
  if (is_dense) {
    hints.push_back(HintOnTime(values));
    hints.push_back(HintOnMissing(values));
  } else if (!values.is_number()) {
    hints.push_back(HintOnText(values));
    if (hints.back().empty()) hints.push_back(HintOnBadDates(values));
    if (hints.back().empty()) hints.push_back(HintOnBags(values, table.dialect.delimiter));
  }
  return hints;
}

}  // namespace

std::string ProposeSchema(const ProposalOptions& options) {
  if (options.input == "-")
    Fail(ErrorCode::kUsage,
         "standard input cannot be read twice: write it, or a part of it (head -n 100000), to a "
         "file, and give that");
  const Table table = ReadTable(options);
  const size_t label = FindLabel(table);
  std::set<std::string> missing, names;
  bool trim = table.dialect.trim;
  for (const Column& column : table.columns) {
    for (const auto& [text, count] : column.values.missing_texts()) missing.insert(text);
    trim |= column.values.has_blanks();
    if (!names.insert(column.name).second)
      Fail(ErrorCode::kData, "{}:1: column '{}' appears twice: rename one", options.input,
           Escape(column.name));
  }

  std::string text = fmt::format(
      "# Proposed by `renzan data schema` from {}{} of {}.\n"
      "# Check the roles, above all the label's, before you import with --format csv --schema.\n",
      table.complete ? "" : "the first ", Counted(table.rows, "row"), Escape(options.input));
  if (!LooksLikeLabel(table, label))
    text += fmt::format(
        "# No column looks like a label: '{}' is a guess. Give the role label to the right column, "
        "and\n# another to this one; data for predictions needs no column with the role label.\n",
        Escape(table.columns[label].name));
  if (table.bad_rows > 0)
    text +=
        fmt::format("# {} not have {}: fix {}, or import with --on-bad-row skip.\n",
                    table.bad_rows == 1 ? "1 row does" : fmt::format("{} rows do", table.bad_rows),
                    Counted(table.columns.size(), "field"), table.bad_rows == 1 ? "it" : "them");
  const Dialect& dialect = table.dialect;
  if (!dialect.unlike_header.empty())
    text += fmt::format("# The first line is taken as {}, {} {}.\n",
                        dialect.header ? "the header" : "data, not as a header",
                        dialect.header ? "although" : "because", dialect.unlike_header);
  text += fmt::format("{}\nheader: {}\n", DelimiterInSchema(dialect.delimiter), dialect.header);
  if (!dialect.quotes) text += "quotes: false\n";
  if (trim) text += "trim: true\n";
  if (!missing.empty()) {
    std::vector<std::string> quoted;
    for (const std::string& word : missing) quoted.push_back(QuotedForYaml(word));
    text += fmt::format("missing: [{}]\n", fmt::join(quoted, ", "));
  }
  text += "columns:\n";
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    std::vector<std::string> comment = {CommentOn(column)};
    std::string description, below;
    if (i == label) {
      const Labels labels = LabelsOf(column.values);
      description = DescribeLabel(labels);
      comment.push_back(HintOnLabel(labels));
      below = CommentOnBadLabels(column.values, labels);
    } else {
      description = DescribeFeature(table, column);
      for (std::string& hint : HintsOnFeature(table, column, description))
        comment.push_back(std::move(hint));
    }
    std::erase(comment, "");
    text += fmt::format("  {}: {{{}}}  # {}\n{}", QuotedForYaml(column.name), description,
                        fmt::join(comment, "; "), below);
  }
  return text;
}

}  // namespace renzan
