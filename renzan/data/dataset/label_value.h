#pragma once

// Which values a label of a dataset may have.

#include <cstdint>
#include <string>

#include "renzan/data/dataset/dataset.h"

namespace renzan {

// `is_number`: whether the label is a number instead of 0 or 1; `optional`: whether it may be
// missing, which is NaN.
bool IsLabel(float label, bool is_number, bool optional);

// For a label that is none: "is 3, not 0 or 1".
std::string WhyNoLabel(float label, bool is_number, bool optional);

// Summarises the values of a label that is a number, in the order of the rows. Not thread-safe.
class NumberCounter {
 public:
  // `summary` is right after every Add() and must outlive this.
  explicit NumberCounter(NumberSummary* summary) : summary_(summary) {}
  void Add(float label);

 private:
  NumberSummary* summary_;
  int64_t rows_ = 0;
  double sum_ = 0;
};

}  // namespace renzan
