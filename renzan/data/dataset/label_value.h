#pragma once

// Which values a label of a dataset may have.

#include <cstdint>
#include <string>

#include "renzan/data/dataset/dataset.h"

namespace renzan {

// Whether a row's label may have this value: NaN if it is missing.
bool IsLabel(const DatasetLabel& label, float value);

// For a value that it may not have: "is 3, not 0 or 1".
std::string WhyNoLabel(const DatasetLabel& label, float value);

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
