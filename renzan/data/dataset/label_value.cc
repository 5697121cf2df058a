#include "renzan/data/dataset/label_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace renzan {

bool IsLabel(const DatasetLabel& label, float value) {
  if (std::isnan(value)) return label.optional;
  return label.is_number() ? IsNumberLabel(value) : value == 0.0f || value == 1.0f;
}

std::string WhyNoLabel(const DatasetLabel& label, float value) {
  return fmt::format(
      "is {}, not {}{}", value,
      label.is_number() ? fmt::format("a number from -{0} to {0}", kMaxNumberLabel) : "0 or 1",
      label.optional ? " or missing" : "");
}

void NumberCounter::Add(float label) {
  const double value = label;
  summary_->min = rows_ == 0 ? value : std::min(summary_->min, value);
  summary_->max = rows_ == 0 ? value : std::max(summary_->max, value);
  sum_ += value;
  summary_->mean = sum_ / static_cast<double>(++rows_);
}

}  // namespace renzan
