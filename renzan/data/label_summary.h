#pragma once

// What an import found in the column of labels.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/data/dataset/dataset.h"

namespace renzan {

struct LabelSummary {
  struct Text {
    std::string text;
    int64_t rows = 0;
  };

  int64_t rows = 0, positive_rows = 0;   // that have the label, and have 1
  int64_t missing_rows = 0;              // that lack it
  std::optional<NumberSummary> numbers;  // if the label is a number
  // Rows whose label is 0 only because every text but one means 0, and the most frequent of their
  // texts.
  int64_t other_rows = 0;
  std::vector<Text> other_texts;

  bool has_one_value() const {
    if (numbers) return numbers->min == numbers->max;
    return positive_rows == 0 || positive_rows == rows;
  }
};

struct DatasetManifest;

// Not thread-safe.
class LabelCounter {
 public:
  // `other_label` as in TextRow.
  void Add(float label, std::string_view other_label);
  // With at most `num_texts` texts, the most frequent first. `manifest`: of the dataset.
  LabelSummary Summary(size_t num_texts, const DatasetManifest& manifest) const;

 private:
  LabelSummary totals_;
  std::map<std::string, int64_t, std::less<>> rows_of_text_;
};

struct FurtherLabelSummary {
  std::string name;
  int64_t rows = 0, positive_rows = 0;   // that have the label, and have 1
  std::optional<NumberSummary> numbers;  // if the label is a number
};
// In their order.
std::vector<FurtherLabelSummary> FurtherLabelsOf(const DatasetManifest& manifest);

// "mean 3.502, from 0.5 to 5".
std::string Describe(const NumberSummary& numbers);
// "label 'buy': 1 in 24 of 120 rows", or "label 'rating': mean 3.502, from 0.5 to 5 in 120 rows".
std::string Describe(const FurtherLabelSummary& label);

// If the label `name` is the same in all rows that have it. `dropped_rows`: as --keep-negatives
// left out.
void WarnOfOneValue(const std::string& name, const LabelSummary& label, int64_t dropped_rows);
// If a label is the same in all rows that have it.
void WarnOfOneValue(const std::vector<FurtherLabelSummary>& labels);

}  // namespace renzan
