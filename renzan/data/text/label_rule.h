#pragma once

// Which values of a label's column mean 1 and which mean 0, or that they are numbers
// (docs/formats/dataset.md). Plain data.

#include <limits>
#include <map>
#include <string>
#include <string_view>

namespace renzan {

class ConfigFields;

struct LabelRule {
  // One of the pairs "0/1", "-1/1", "no/yes" and "false/true": what means 0, and what means 1.
  // Numbers are compared as numbers, words without regard to case. Or kNumber. Empty: "0/1", unless
  // one of the following is given.
  std::string values;
  std::string positive, negative;  // texts; `negative` may be kOther
  double positive_above = std::numeric_limits<double>::quiet_NaN();  // larger numbers mean 1
  double at_least = std::numeric_limits<double>::quiet_NaN();        // this and larger ones mean 1

  // As `negative`: every text but `positive` means 0.
  static constexpr std::string_view kOther = "other";
  // As `values`: the label is the field's number, from -kMaxNumberLabel to kMaxNumberLabel.
  static constexpr std::string_view kNumber = "number";

  // Whether the numbers 0 and 1 are the labels, as without any rule.
  bool is_zero_one() const;
  // `is_label`: whether the column is the label; for other columns nothing may be set.
  void Describe(bool is_label, ConfigFields& fields);
  // DatasetSchema::label_rule. Rules with the same text map the same values to the same labels, if
  // both map them.
  std::string text() const;

  // Sets *label to 0 or 1, or the number, and *is_other to whether it is 0 only because `negative`
  // is kOther. Returns what is wrong with the field, or "".
  std::string Parse(std::string_view field, float* label, bool* is_other) const;
};

// The text() of a rule that data record, where the default has a name, too: "values 0/1". "" if the
// version that imported the data recorded no rules; `parsing`, DatasetSchema::parsing, was recorded
// only later, so then it is empty.
std::string RecordedLabelRule(const std::string& text,
                              const std::map<std::string, std::string>& parsing);
// The same of all labels, by name. `first`: "" if its name is not known.
std::map<std::string, std::string> RecordedLabelRules(
    const std::string& first, const std::string& rule_of_first,
    const std::map<std::string, std::string>& further,
    const std::map<std::string, std::string>& parsing);

}  // namespace renzan
