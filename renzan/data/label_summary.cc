#include "renzan/data/label_summary.h"

#include <algorithm>
#include <cmath>

#include "renzan/base/counted.h"
#include "renzan/base/log.h"
#include "renzan/data/dataset/manifest.h"

namespace renzan {
namespace {

// A column that is not a label may have a different text in every row.
constexpr size_t kMaxTexts = 1000;

std::optional<NumberSummary> NumbersOf(const DatasetManifest& manifest, const std::string& label) {
  const auto found = manifest.number_labels.find(label);
  if (found == manifest.number_labels.end()) return std::nullopt;
  return found->second;
}

// The value of a label that has only one.
double OneValue(const std::optional<NumberSummary>& numbers, int64_t positive_rows) {
  if (numbers) return numbers->min;
  return positive_rows > 0 ? 1 : 0;
}

// Whether a label is in no row at all, of which it then warns.
bool WarnedOfNone(const std::string& name, int64_t rows) {
  if (rows > 0) return false;
  LogWarning("no row has the label '{}', so that nothing can learn from it: check its column",
             name);
  return true;
}

// From a label with one value in all rows.
const char* WhoCanLearn(bool is_positive) {
  return is_positive ? "only models that compare items with others" : "no model";
}

}  // namespace

void LabelCounter::Add(float label, std::string_view other_label) {
  if (std::isnan(label)) {
    ++totals_.missing_rows;
    return;
  }
  ++totals_.rows;
  totals_.positive_rows += label == 1.0f;
  if (other_label.empty()) return;
  ++totals_.other_rows;
  const auto found = rows_of_text_.find(other_label);
  if (found != rows_of_text_.end()) {
    ++found->second;
  } else if (rows_of_text_.size() < kMaxTexts) {
    rows_of_text_.emplace(other_label, 1);
  }
}

LabelSummary LabelCounter::Summary(size_t num_texts, const DatasetManifest& manifest) const {
  LabelSummary summary = totals_;
  summary.numbers = NumbersOf(manifest, manifest.label);
  if (summary.numbers) summary.positive_rows = -1;
  for (const auto& [text, rows] : rows_of_text_) summary.other_texts.push_back({text, rows});
  std::stable_sort(
      summary.other_texts.begin(), summary.other_texts.end(),
      [](const LabelSummary::Text& a, const LabelSummary::Text& b) { return a.rows > b.rows; });
  if (summary.other_texts.size() > num_texts) summary.other_texts.resize(num_texts);
  return summary;
}

std::vector<FurtherLabelSummary> FurtherLabelsOf(const DatasetManifest& manifest) {
  std::vector<FurtherLabelSummary> labels;
  for (const std::string& name : manifest.further_labels) {
    const LabelEntry& entry = manifest.further_label_entries.at(name);
    labels.push_back({name, entry.labelled_rows, entry.positive_rows, NumbersOf(manifest, name)});
  }
  return labels;
}

std::string Describe(const NumberSummary& numbers) {
  return fmt::format("mean {:.4g}, from {:.4g} to {:.4g}", numbers.mean, numbers.min, numbers.max);
}

std::string Describe(const FurtherLabelSummary& label) {
  if (label.numbers)
    return fmt::format("label '{}': {} in {}", label.name, Describe(*label.numbers),
                       Counted(label.rows, "row"));
  return fmt::format("label '{}': 1 in {} of {}", label.name, label.positive_rows,
                     Counted(label.rows, "row"));
}

void WarnOfOneValue(const std::string& name, const LabelSummary& label, int64_t dropped_rows) {
  if (!label.has_one_value()) return;
  if (dropped_rows > 0) {
    LogWarning(
        "--keep-negatives kept 0 of {} with label 0, and no model can learn from one "
        "class: keep a larger share",
        Counted(dropped_rows, "row"));
    return;
  }
  if (WarnedOfNone(name, label.rows)) return;
  LogWarning(
      "the label '{}' is {} in every row{} ({}), from which {} can learn: check that this is the "
      "label's column{}",
      name, OneValue(label.numbers, label.positive_rows),
      label.missing_rows > 0 ? " that has it" : "", Counted(label.rows, "row"),
      WhoCanLearn(!label.numbers && label.positive_rows > 0),
      label.other_rows > 0 ? ", and which text of it means 1" : ", and its rule");
}

void WarnOfOneValue(const std::vector<FurtherLabelSummary>& labels) {
  for (const FurtherLabelSummary& label : labels)
    if (!WarnedOfNone(label.name, label.rows) &&
        (label.numbers ? label.numbers->min == label.numbers->max
                       : label.positive_rows == 0 || label.positive_rows == label.rows))
      LogWarning(
          "the label '{}' is {} in every row that has it ({}), from which {} can learn: check that "
          "this is the label's column, and its rule",
          label.name, OneValue(label.numbers, label.positive_rows), Counted(label.rows, "row"),
          WhoCanLearn(!label.numbers && label.positive_rows > 0));
}

}  // namespace renzan
