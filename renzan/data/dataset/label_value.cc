#include "renzan/data/dataset/label_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace renzan {

bool IsLabel(float label, bool is_number, bool optional) {
  if (std::isnan(label)) return optional;
  return is_number ? IsNumberLabel(label) : label == 0.0f || label == 1.0f;
}

std::string WhyNoLabel(float label, bool is_number, bool optional) {
  return fmt::format(
      "is {}, not {}{}", label,
      is_number ? fmt::format("a number from -{0} to {0}", kMaxNumberLabel) : "0 or 1",
      optional ? " or missing" : "");
}

void NumberCounter::Add(float label) {
  const double value = label;
  summary_->min = rows_ == 0 ? value : std::min(summary_->min, value);
  summary_->max = rows_ == 0 ? value : std::max(summary_->max, value);
  sum_ += value;
  summary_->mean = sum_ / static_cast<double>(++rows_);
}

std::vector<std::string> DatasetSchema::number_labels() const {
  std::vector<std::string> names;
  if (first_label_is_number()) names.push_back(label);
  for (const FurtherLabel& further : further_labels)
    if (further.is_number()) names.push_back(further.name);
  return names;
}

}  // namespace renzan
