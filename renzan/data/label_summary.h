#pragma once

// What an import found in the column of labels.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace renzan {

struct LabelSummary {
  struct Text {
    std::string text;
    int64_t rows = 0;
  };

  int64_t rows = 0, positive_rows = 0;
  // Rows whose label is 0 only because every text but one means 0, and the most frequent of their
  // texts.
  int64_t other_rows = 0;
  std::vector<Text> other_texts;

  bool has_one_class() const { return positive_rows == 0 || positive_rows == rows; }
};

// Not thread-safe.
class LabelCounter {
 public:
  // `other_label` as in TextRow.
  void Add(float label, std::string_view other_label);
  // With at most `num_texts` texts, the most frequent first.
  LabelSummary Summary(size_t num_texts) const;

 private:
  LabelSummary totals_;
  std::map<std::string, int64_t, std::less<>> rows_of_text_;
};

struct DatasetManifest;

struct FurtherLabelSummary {
  std::string name;
  int64_t rows = 0, positive_rows = 0;  // that have the label, and have 1
};
// In their order.
std::vector<FurtherLabelSummary> FurtherLabelsOf(const DatasetManifest& manifest);

// If a label is the same in all rows that have it.
void WarnOfOneClass(const std::vector<FurtherLabelSummary>& labels);

}  // namespace renzan
