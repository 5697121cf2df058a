#include "renzan/data/label_summary.h"

#include <algorithm>

#include "renzan/base/counted.h"
#include "renzan/base/log.h"
#include "renzan/data/dataset/manifest.h"

namespace renzan {
namespace {

// A column that is not a label may have a different text in every row.
constexpr size_t kMaxTexts = 1000;

}  // namespace

void LabelCounter::Add(float label, std::string_view other_label) {
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

LabelSummary LabelCounter::Summary(size_t num_texts) const {
  LabelSummary summary = totals_;
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
    const FurtherLabelEntry& entry = manifest.further_label_entries.at(name);
    labels.push_back({name, entry.labelled_rows, entry.positive_rows});
  }
  return labels;
}

void WarnOfOneClass(const std::vector<FurtherLabelSummary>& labels) {
  for (const FurtherLabelSummary& label : labels)
    if (label.positive_rows == 0 || label.positive_rows == label.rows)
      LogWarning(
          "the label '{}' is {} in every row that has it ({}), from which no model can learn: "
          "check "
          "that this is the label's column, and its rule",
          label.name, label.positive_rows > 0 ? 1 : 0, Counted(label.rows, "row"));
}

}  // namespace renzan
