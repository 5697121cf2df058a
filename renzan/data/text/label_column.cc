#include "renzan/data/text/label_column.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "renzan/base/escape.h"
#include "renzan/data/text/column_hints.h"
#include "renzan/data/text/column_kinds.h"
#include "renzan/data/text/csv_record.h"

namespace renzan {
namespace {

// With more distinct values, exceptions do not make a column a label.
constexpr size_t kFewLabels = 100;

bool IsYes(const std::string& text) {
  static constexpr std::string_view kYes[] = {"yes", "y", "true", "t", "positive", "click"};
  return std::find(std::begin(kYes), std::end(kYes), Lower(text)) != std::end(kYes);
}

bool IsNo(const std::string& text) {
  static constexpr std::string_view kNo[] = {"no", "n", "false", "f", "negative", "none"};
  return std::find(std::begin(kNo), std::end(kNo), Lower(text)) != std::end(kNo);
}

// Whether `text` is the opposite of `other` by its first letters: "not bought", unliked, no_click.
bool Negates(const std::string& text, const std::string& other) {
  static constexpr std::string_view kNegations[] = {"not", "no", "non", "un"};
  const std::string lower = Lower(text), of = Lower(other);
  if (of.empty() || !lower.ends_with(of)) return false;
  std::string_view before = std::string_view(lower).substr(0, lower.size() - of.size());
  while (!before.empty() && (before.back() == ' ' || before.back() == '_' || before.back() == '-'))
    before.remove_suffix(1);
  return std::find(std::begin(kNegations), std::end(kNegations), before) != std::end(kNegations);
}

struct PositiveText {
  size_t index = 0;  // in Labels::counts, which has one
  bool is_guess = false;
};

PositiveText FindPositive(const Counts& counts) {
  for (size_t i = 0; i < counts.size(); ++i)
    if (IsYes(counts[i].first)) return {.index = i};
  if (counts.size() == 2)
    for (const size_t i : {0, 1})
      if (Negates(counts[1 - i].first, counts[i].first) || IsNo(counts[1 - i].first))
        return {.index = i};
  // The rarer of two, as clicks are.
  return {.index = std::min<size_t>(1, counts.size() - 1), .is_guess = true};
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

// The limit for at_least: of those that leave both labels, the one that divides the rows most
// evenly.
double GuessedLimit(const std::map<double, int64_t>& counts) {
  int64_t all = 0, above = 0;
  for (const auto& [number, count] : counts) all += count;
  double best = counts.rbegin()->first, best_distance = 1;
  for (auto it = counts.rbegin(); it != counts.rend() && std::next(it) != counts.rend(); ++it) {
    above += it->second;
    const double distance = std::fabs(static_cast<double>(above) / static_cast<double>(all) - 0.5);
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = it->first;
  }
  return best;
}

std::string DescribeNumericLabel(const Labels& labels) {
  if (labels.are(0, 1)) return "role: label";
  if (labels.are(-1, 1) && !labels.unlike.empty()) return "role: label, values: -1/1";
  return fmt::format("role: label, at_least: {}", GuessedLimit(labels.numbers()));
}

}  // namespace

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

size_t FindLabel(const Table& table) {
  size_t label = 0;
  int best_score = LabelScore(table, label);
  for (size_t i = 1; i < table.columns.size(); ++i) {
    const int score = LabelScore(table, i);
    if (score < best_score) continue;
    best_score = score;
    label = i;
  }
  return label;
}

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

std::string DescribeLabel(const Labels& labels) {
  if (labels.are_numbers) return DescribeNumericLabel(labels);
  const auto& counts = labels.counts;
  if (counts.empty()) return "role: label";  // every value is missing
  const size_t positive = FindPositive(counts).index;
  return fmt::format("role: label, positive: {}, negative: {}",
                     QuotedForYaml(counts[positive].first),
                     counts.size() == 2 ? QuotedForYaml(counts[1 - positive].first) : "other");
}

std::string HintOnLabel(const Labels& labels) {
  if (!labels.are_numbers) {
    if (labels.counts.empty() || !FindPositive(labels.counts).is_guess) return "";
    return labels.counts.size() == 2 ? "which of the two means 1 is a guess: the rarer one"
                                     : "which text means 1 is a guess";
  }
  const std::map<double, int64_t> numbers = labels.numbers();
  if (numbers.size() < 3) return "";
  const double limit = GuessedLimit(numbers);
  int64_t positive = 0, all = 0;
  for (const auto& [number, count] : numbers) {
    all += count;
    if (number >= limit) positive += count;
  }
  return fmt::format(
      "at_least: {} is a guess, by which {:.3g} % are 1; values: number would take them as they "
      "are",
      limit, 100 * static_cast<double>(positive) / static_cast<double>(all));
}

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

}  // namespace renzan
