#include "renzan/data/text/propose_schema.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/data/text/column_hints.h"
#include "renzan/data/text/column_statistics.h"
#include "renzan/data/text/csv_delimiter.h"
#include "renzan/data/text/csv_record.h"

namespace renzan {
namespace {

constexpr size_t kSniffedRecords = 200;
// If fewer records have the same number of fields, the file is not a table.
constexpr double kTableShare = 0.5;
constexpr int64_t kRowsBetweenStops = 4096;
// Fewer rows do not show whether values repeat.
constexpr int64_t kEnoughRows = 50;
constexpr double kNearlyAll = 0.99;
// Whole numbers with at most this many distinct values are codes rather than quantities.
constexpr size_t kFewNumbers = 10;
// With more, they may be ids.
constexpr size_t kFewIds = 20;
// With more distinct values, exceptions do not make a column a label.
constexpr size_t kFewLabels = 100;
// Seconds since 1970 of the years 1973 to 2286.
constexpr double kMinUnixTime = 1e8, kMaxUnixTime = 1e10;

std::string Lower(std::string_view text) {
  std::string lower;
  for (const unsigned char c : text) lower += static_cast<char>(std::tolower(c));
  return lower;
}

struct Dialect {
  std::string delimiter = ",";
  bool quotes = true;
  bool trim = false;
  size_t num_fields = 1;
  double share = 0;  // of records with that many
  bool header = false;
  std::string unlike_header = "";  // what in the first record is no name, or ""
  std::vector<std::string> names = {};
};

using Record = std::vector<std::string>;

// The first records; one whose quotes are wrong has no fields.
std::vector<Record> FirstRecords(const ProposalOptions& options, const Dialect& dialect,
                                 bool trim = true) {
  LineReader lines({options.input}, options.stop);
  CsvRecordReader reader(dialect.delimiter, dialect.quotes, trim);
  std::vector<Record> records;
  std::string problem;
  int64_t line = 0;
  while (records.size() < kSniffedRecords && reader.Next(lines, &line, &problem)) {
    records.emplace_back();
    if (problem.empty())
      records.back().assign(reader.fields().begin(), reader.fields().end());
    else
      reader.RejectRecord(lines, [] { return true; });
  }
  std::erase_if(records,
                [](const Record& record) { return record.size() == 1 && record[0].empty(); });
  return records;
}

// The delimiter that gives most records the same number of fields.
Dialect FindDelimiter(const ProposalOptions& options) {
  Dialect best;
  for (const bool quotes : {true, false}) {
    for (const char* delimiter : kUsualDelimiters) {
      Dialect dialect{.delimiter = delimiter, .quotes = quotes};
      const std::vector<Record> records = FirstRecords(options, dialect);
      std::map<size_t, size_t> counts;
      for (const Record& record : records) ++counts[record.size()];
      for (const auto& [num_fields, count] : counts) {
        const double share = static_cast<double>(count) / static_cast<double>(records.size());
        if (num_fields < 2 || share < best.share ||
            (share == best.share && num_fields <= best.num_fields))
          continue;
        best = dialect;
        best.share = share;
        best.num_fields = num_fields;
      }
    }
  }
  return best;
}

// What is no name in the first record: a number, a date, a text that means missing, an empty one
// but the first, one that occurs twice, or a value that its column has elsewhere; "" if there is
// none. For people.
std::string UnlikeHeader(const std::vector<Record>& records) {
  const Record& first = records[0];
  std::set<std::string> seen;
  for (size_t i = 0; i < first.size(); ++i) {
    const std::string& text = first[i];
    const std::string shown = fmt::format("'{}'", Escape(ShortText(text, kShownBytes)));
    double number = 0;
    if (text.empty()) {
      if (i > 0) return fmt::format("its field {} is empty", i + 1);
      continue;
    }
    if (!seen.insert(text).second) return shown + " occurs twice in it";
    if (IsNumber(text, &number)) return shown + " is a number";
    ColumnStatistics statistics;
    statistics.Add(text);
    if (statistics.missing() > 0) return shown + " usually means missing";
    if (!statistics.date_format().empty()) return shown + " is a date";
    if (std::any_of(records.begin() + 1, records.end(),
                    [&](const Record& record) { return record[i] == text; }))
      return shown + " occurs below it, too";
  }
  return "";
}

// Whether more fields of the first record differ in type from the numbers and dates below them than
// are values like those below. Then the first record is a header, though some of it is unlike one.
bool HasOtherTypes(const std::vector<Record>& records) {
  const Record& first = records[0];
  size_t names = 0, values = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    ColumnStatistics above, below;
    above.Add(first[i]);
    for (size_t row = 1; row < records.size(); ++row) below.Add(records[row][i]);
    if (above.present() == 0 || below.present() == 0) continue;
    const auto is_value = [](const ColumnStatistics& column) {
      return column.is_number() || !column.date_format().empty();
    };
    if (is_value(below))
      ++(is_value(above) ? values : names);
    else
      values += std::any_of(records.begin() + 1, records.end(),
                            [&](const Record& record) { return record[i] == first[i]; });
  }
  return names > values;
}

Dialect FindDialect(const ProposalOptions& options) {
  Dialect dialect = FindDelimiter(options);
  std::vector<Record> records = FirstRecords(options, dialect);
  if (!records.empty() && dialect.share < kTableShare)
    Fail(ErrorCode::kData,
         "{}: no delimiter divides most lines into the same number of fields, at least two: is "
         "this a CSV or TSV file?",
         options.input);
  std::erase_if(records, [&](const Record& record) { return record.size() != dialect.num_fields; });
  if (records.empty()) Fail(ErrorCode::kData, "{} has no rows", options.input);
  dialect.unlike_header = UnlikeHeader(records);
  dialect.header = dialect.unlike_header.empty() || HasOtherTypes(records);
  for (const Record& record : FirstRecords(options, dialect, /*trim=*/false))
    for (const std::string& field : record) dialect.trim |= TrimBlanks(field) != field;
  for (size_t i = 0; i < dialect.num_fields; ++i)
    dialect.names.push_back(dialect.header ? records[0][i] : fmt::format("c{}", i + 1));
  return dialect;
}

struct Column {
  std::string name;
  ColumnStatistics values = {};
};

struct Table {
  Dialect dialect;
  std::vector<Column> columns = {};
  int64_t rows = 0, bad_rows = 0;
  bool complete = true;
};

Table ReadTable(const ProposalOptions& options) {
  Table table{.dialect = FindDialect(options)};
  for (const std::string& name : table.dialect.names) table.columns.push_back({.name = name});
  LineReader lines({options.input}, options.stop);
  CsvRecordReader reader(table.dialect.delimiter, table.dialect.quotes, table.dialect.trim);
  std::string problem;
  int64_t line = 0;
  bool header = table.dialect.header;
  while (reader.Next(lines, &line, &problem)) {
    const std::vector<std::string_view>& fields = reader.fields();
    if (std::exchange(header, false)) continue;
    if (problem.empty() && fields.size() == 1 && fields[0].empty()) continue;
    if (!problem.empty() || fields.size() != table.columns.size()) {
      ++table.bad_rows;
      reader.RejectRecord(lines, [&] { return fields.size() == table.columns.size(); });
      continue;
    }
    if (table.rows == options.max_rows) {
      table.complete = false;
      break;
    }
    if (table.rows % kRowsBetweenStops == 0) ThrowIfStopped(options.stop);
    for (size_t i = 0; i < fields.size(); ++i) table.columns[i].values.Add(fields[i]);
    ++table.rows;
  }
  if (table.rows == 0) Fail(ErrorCode::kData, "{} has no rows", options.input);
  return table;
}

bool HasOwnValueInEveryRow(const ColumnStatistics& values) {
  return values.present() >= kEnoughRows &&
         static_cast<double>(values.distinct()) >=
             kNearlyAll * static_cast<double>(values.present_while_counted());
}

// Whether the texts identify rows, so that predictions can be joined by them: all different, none
// missing, and no prose.
bool IsKey(const ColumnStatistics& values) {
  if (values.present() < kEnoughRows || values.missing() > 0) return false;
  if (static_cast<int64_t>(values.distinct()) != values.present_while_counted()) return false;
  const auto all = values.MostFrequent(values.distinct());
  return std::none_of(all.begin(), all.end(),
                      [](const auto& value) { return value.first.find(' ') != std::string::npos; });
}

bool IsIdName(const std::string& name) {
  const std::string lower = Lower(name);
  // userId, user_id, id, but not "paid".
  return lower == "id" || name.ends_with("Id") || name.ends_with("ID") || lower.ends_with("_id") ||
         lower.ends_with("-id") || lower.ends_with(" id") ||
         lower.find("zip") != std::string::npos || lower.ends_with("code");
}

// Whether it is a usual name of ids, which are whole numbers: user, sku, itemid.
bool IsEntityName(const std::string& name) {
  static constexpr std::string_view kEntities[] = {
      "user",   "customer", "visitor",    "member", "item",     "product", "movie",  "video",
      "song",   "artist",   "article",    "book",   "ad",       "advert",  "banner", "campaign",
      "seller", "brand",    "advertiser", "site",   "category", "store",   "shop",   "merchant",
      "sku",    "creative", "publisher",  "device", "query",    "session"};
  static constexpr std::string_view kIds[] = {"uid", "iid", "pid", "cid", "sid", "gid", "mid"};
  std::string lower = Lower(name);
  if (std::find(std::begin(kIds), std::end(kIds), lower) != std::end(kIds)) return true;
  if (lower.ends_with("id")) lower.resize(lower.size() - 2);
  return std::find(std::begin(kEntities), std::end(kEntities), lower) != std::end(kEntities);
}

bool HoldsIds(const Column& column) {
  return IsIdName(column.name) ||
         (IsEntityName(column.name) && column.values.is_whole() && column.values.min() >= 0);
}

// Whether these are many whole numbers that fill at least half of their range, as ids do.
bool FillsItsRange(const ColumnStatistics& values) {
  constexpr size_t kMany = 500;
  return values.is_whole() && values.distinct() > kMany &&
         2 * static_cast<double>(values.distinct()) >= values.max() - values.min() + 1;
}

bool IsUnixTime(const Column& column) {
  const std::string lower = Lower(column.name);
  const bool named = lower.find("time") != std::string::npos ||
                     lower.find("date") != std::string::npos || lower == "ts" ||
                     lower.ends_with("_ts") || lower.ends_with("_at");
  return named && column.values.date_format().starts_with("%s") &&
         column.values.min() >= kMinUnixTime && column.values.max() < kMaxUnixTime;
}

using Counts = std::vector<std::pair<std::string, int64_t>>;

// The values of a label's column, the most frequent first, without a few that do not fit the
// others: a text among numbers, a third text beside two, another number beside 0 and 1 or -1 and 1.
// Rows with those are bad rows.
struct Labels {
  Counts counts = {};
  bool are_numbers = false;
  Counts unlike = {};

  std::map<double, int64_t> numbers() const {
    std::map<double, int64_t> rows;
    double number = 0;
    for (const auto& [text, count] : counts)
      if (IsNumber(text, &number)) rows[number] += count;
    return rows;
  }
  bool are(double low, double high) const {
    const std::map<double, int64_t> rows = numbers();
    return are_numbers && rows.size() == 2 && rows.contains(low) && rows.contains(high);
  }
};

Labels LabelsOf(const ColumnStatistics& values) {
  // One of a hundred rows may be an exception, but not one of three values that differ anyway.
  const auto nearly_all = [&](int64_t rows) {
    return rows == values.present() ||
           (values.present() >= kEnoughRows &&
            static_cast<double>(rows) >= kNearlyAll * static_cast<double>(values.present()));
  };
  Labels labels{.counts = {}, .are_numbers = values.present() > 0 && nearly_all(values.numbers())};
  int64_t of_two = 0;
  for (const auto& [text, count] : values.MostFrequent(2)) of_two += count;
  const bool are_two = nearly_all(of_two);
  const Counts all = values.MostFrequent(values.distinct());
  std::map<double, int64_t> numbers = Labels{all}.numbers();
  const auto are_nearly_all = [&](double low) {
    return numbers.contains(low) && numbers.contains(1) && nearly_all(numbers[low] + numbers[1]);
  };
  const double low = are_nearly_all(0) ? 0 : -1;
  const bool are_usual = are_nearly_all(low);
  for (const auto& value : all) {
    double number = 0;
    const bool fits = labels.are_numbers ? IsNumber(value.first, &number) &&
                                               (!are_usual || number == low || number == 1)
                                         : !are_two || labels.counts.size() < 2;
    (fits ? labels.counts : labels.unlike).push_back(value);
  }
  return labels;
}

bool IsYes(const std::string& text) {
  static constexpr std::string_view kYes[] = {"yes", "y", "true", "t", "positive", "click"};
  return std::find(std::begin(kYes), std::end(kYes), Lower(text)) != std::end(kYes);
}

// How likely a column is the label.
int LabelScore(const Table& table, size_t index) {
  static constexpr std::string_view kNames[] = {
      "label", "target",  "click",     "clicked",    "is_click", "y",        "class",
      "like",  "outcome", "converted", "conversion", "purchase", "survived", "churn",
      "liked", "income",  "response",  "purchased",  "bought"};
  static constexpr std::string_view kRatings[] = {"rating", "ratings", "stars", "score"};
  const Column& column = table.columns[index];
  const ColumnStatistics& values = column.values;
  const auto named = [&](const auto& names) {
    return std::find(std::begin(names), std::end(names), Lower(column.name)) != std::end(names);
  };
  constexpr int kNever = -1000;
  if (column.name.empty() || values.distinct() < 2) return kNever;
  const bool few = values.distinct() <= kFewLabels;
  const Labels labels = few ? LabelsOf(values) : Labels{};
  const bool is_number = few ? labels.are_numbers : values.is_number();
  const size_t distinct = few ? labels.counts.size() : values.distinct();
  int score = 0;
  if (named(kNames)) score += 100;
  if (named(kRatings) && is_number) score += 60;
  if (distinct == 2) score += 30;
  if (values.missing() > 0) score -= 20;
  if (index == 0 || index + 1 == table.columns.size()) score += 5;
  if (!is_number) score -= 5;
  if (values.distinct() > 2 * kFewNumbers) score -= 40;
  if (IsIdName(column.name) || IsUnixTime(column)) score -= 50;
  if (values.in_brackets() || (!is_number && values.bag_separator() != 0)) score -= 100;
  if (!is_number && distinct > 2) score -= 30;
  return score;
}

// Whether a person would take the column for a label, rather than for the best of the features.
bool LooksLikeLabel(const Table& table, size_t index) {
  constexpr int kNamed = 40;  // above what a column gets without a usual name
  if (LabelScore(table, index) >= kNamed) return true;
  const ColumnStatistics& values = table.columns[index].values;
  const Labels labels = values.distinct() <= kFewLabels ? LabelsOf(values) : Labels{};
  if (labels.counts.size() != 2 || LabelScore(table, index) < 0) return false;
  if (labels.are_numbers) return labels.are(0, 1) || labels.are(-1, 1);
  return std::any_of(labels.counts.begin(), labels.counts.end(),
                     [](const auto& value) { return IsYes(value.first); });
}

std::string DescribeNumericLabel(const Labels& labels) {
  if (labels.are(0, 1)) return "role: label";
  if (labels.are(-1, 1) && !labels.unlike.empty()) return "role: label, values: -1/1";
  const std::map<double, int64_t> counts = labels.numbers();
  int64_t all = 0;
  for (const auto& [number, count] : counts) all += count;
  // Of the limits that leave both labels, the one that divides the rows most evenly.
  double best = counts.rbegin()->first, best_distance = 1;
  int64_t above = 0;
  for (auto it = counts.rbegin(); it != counts.rend() && std::next(it) != counts.rend(); ++it) {
    above += it->second;
    const double distance = std::fabs(static_cast<double>(above) / static_cast<double>(all) - 0.5);
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = it->first;
  }
  return fmt::format("role: label, at_least: {}", best);
}

std::string DescribeLabel(const Labels& labels) {
  if (labels.are_numbers) return DescribeNumericLabel(labels);
  const auto& counts = labels.counts;
  if (counts.empty()) return "role: label";                  // every value is missing
  size_t positive = std::min<size_t>(1, counts.size() - 1);  // the rarer of two, as clicks are
  for (size_t i = 0; i < counts.size(); ++i)
    if (IsYes(counts[i].first)) positive = i;
  return fmt::format("role: label, positive: {}, negative: {}",
                     QuotedForYaml(counts[positive].first),
                     counts.size() == 2 ? QuotedForYaml(counts[1 - positive].first) : "other");
}

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

bool IsDate(const Column& column) {
  const std::string format = column.values.date_format();
  return !format.empty() && (!format.starts_with("%s") || IsUnixTime(column));
}

bool IsConstant(const ColumnStatistics& values) {
  return values.distinct() == 1 && values.missing() == 0;
}

constexpr char kDense[] = "role: dense";

// For a column that is not the label.
std::string DescribeFeature(const Table& table, const Column& column) {
  const ColumnStatistics& values = column.values;
  if (column.name.empty() || values.present() == 0 || IsConstant(values)) return "role: skip";
  if (IsDate(column)) return DescribeDate(values);
  if (values.in_brackets()) return "role: multi_hot, brackets: true";
  if (HoldsIds(column) || FillsItsRange(values) || !values.is_number()) {
    if (IsKey(values)) return "role: key";
    if (HasOwnValueInEveryRow(values)) return "role: skip";
    const char separator = values.is_number() ? 0 : values.bag_separator();
    if (separator == 0 || table.dialect.delimiter == std::string(1, separator))
      return "role: categorical";
    return separator == '|' ? "role: multi_hot"
                            : fmt::format("role: multi_hot, separator: {}",
                                          QuotedForYaml(std::string(1, separator)));
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
    if (hints.back().empty()) hints.push_back(HintOnBags(values, table.dialect.delimiter));
  }
  std::erase(hints, "");
  return hints;
}

// Of the label's column: what a limit that is a guess does.
std::vector<std::string> HintsOnLabel(const Labels& labels) {
  constexpr std::string_view kLimit = "at_least: ";
  const std::map<double, int64_t> numbers = labels.numbers();
  if (!labels.are_numbers || numbers.size() < 3) return {};
  const std::string rule = DescribeNumericLabel(labels);
  const double limit = std::stod(rule.substr(rule.find(kLimit) + kLimit.size()));
  int64_t positive = 0, all = 0;
  for (const auto& [number, count] : numbers) {
    all += count;
    if (number >= limit) positive += count;
  }
  return {fmt::format("at_least: {} is a guess, by which {:.3g} % are 1", limit,
                      100 * static_cast<double>(positive) / static_cast<double>(all))};
}

// Of the label's column.
std::string CommentOnBadLabels(const ColumnStatistics& values, const Labels& labels) {
  std::string text;
  if (values.missing() > 0)
    text += "  # Rows without a label are bad rows: import with --on-bad-row skip.\n";
  if (labels.unlike.empty()) return text;
  int64_t rows = 0;
  for (const auto& [value, count] : labels.unlike) rows += count;
  return text + fmt::format(
                    "  # {} with another label, such as '{}': fix {}, or import with --on-bad-row "
                    "skip.\n",
                    rows == 1 ? "1 row is a bad row" : fmt::format("{} rows are bad rows", rows),
                    Escape(ShortText(labels.unlike[0].first, kShownBytes)),
                    rows == 1 ? "it" : "them");
}

}  // namespace

std::string ProposeSchema(const ProposalOptions& options) {
  if (options.input == "-")
    Fail(ErrorCode::kUsage,
         "standard input cannot be read twice: write it, or a part of it (head -n 100000), to a "
         "file, and "
         "give that");
  const Table table = ReadTable(options);
  size_t label = 0;
  int best_score = LabelScore(table, label);
  for (size_t i = 1; i < table.columns.size(); ++i) {
    const int score = LabelScore(table, i);
    if (score < best_score) continue;
    best_score = score;
    label = i;
  }
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
      "# Proposed by `renzan data schema` from {}{} {} of {}.\n"
      "# Check the roles, above all the label's, before you import with --format csv --schema.\n",
      table.complete ? "" : "the first ", table.rows, table.rows == 1 ? "row" : "rows",
      Escape(options.input));
  if (!LooksLikeLabel(table, label))
    text += fmt::format(
        "# No column looks like a label: '{}' is a guess. Give the role label to the right column, "
        "and\n# another to this one; data for predictions needs no column with the role label.\n",
        Escape(table.columns[label].name));
  if (table.bad_rows > 0)
    text +=
        fmt::format("# {} not have {} fields: fix {}, or import with --on-bad-row skip.\n",
                    table.bad_rows == 1 ? "1 row does" : fmt::format("{} rows do", table.bad_rows),
                    table.columns.size(), table.bad_rows == 1 ? "it" : "them");
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
    const bool is_label = i == label;
    const std::string description =
        is_label ? DescribeLabel(LabelsOf(column.values)) : DescribeFeature(table, column);
    std::vector<std::string> comment = is_label ? HintsOnLabel(LabelsOf(column.values))
                                                : HintsOnFeature(table, column, description);
    comment.insert(comment.begin(), CommentOn(column));
    text += fmt::format("  {}: {{{}}}  # {}\n", QuotedForYaml(column.name), description,
                        fmt::join(comment, "; "));
    if (is_label) text += CommentOnBadLabels(column.values, LabelsOf(column.values));
  }
  return text;
}

}  // namespace renzan
