#include "renzan/data/text/label_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <optional>

#include "renzan/base/config/config.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/data/text/parse_number.h"

namespace renzan {
namespace {

constexpr char kDefault[] = "0/1";

struct Pair {
  std::string_view name, negative, positive;
};
constexpr Pair kPairs[] = {{kDefault, "0", "1"},
                           {"-1/1", "-1", "1"},
                           {"no/yes", "no", "yes"},
                           {"false/true", "false", "true"}};

// Null if there is none.
const Pair* PairNamed(std::string_view name) {
  const auto found = std::find_if(std::begin(kPairs), std::end(kPairs),
                                  [&](const Pair& pair) { return pair.name == name; });
  return found == std::end(kPairs) ? nullptr : found;
}

// 1.0 and +1 are the number 1, Yes and YES the word yes.
bool IsSame(std::string_view field, std::string_view value) {
  if (field == value) return true;
  if (const std::optional<double> number = ParseNumber(value)) {
    const std::optional<double> found = ParseNumber(field);
    return found && *found == *number;
  }
  return std::equal(field.begin(), field.end(), value.begin(), value.end(),
                    [](unsigned char a, char b) { return std::tolower(a) == b; });
}

}  // namespace

void LabelRule::Describe(bool is_label, ConfigFields& fields) {
  fields.Field("values", &values);
  fields.Field("positive", &positive);
  fields.Field("negative", &negative);
  fields.Field("positive_above", &positive_above);
  fields.Field("at_least", &at_least);

  fields.Require(values.empty() || values == kNumber || PairNamed(values) != nullptr, "values",
                 "must be one of 0/1, -1/1, no/yes, false/true, number; for other texts use "
                 "'negative' and 'positive'");
  const bool has_above = !std::isnan(positive_above), has_limit = !std::isnan(at_least);
  fields.Require(is_label || values.empty(), "values", "belongs to role label");
  fields.Require(is_label || positive.empty(), "positive", "belongs to role label");
  fields.Require(is_label || negative.empty(), "negative", "belongs to role label");
  fields.Require(is_label || !has_above, "positive_above", "belongs to role label");
  fields.Require(is_label || !has_limit, "at_least", "belongs to role label");
  fields.Require(negative.empty() || !positive.empty(), "negative", "needs 'positive' too");
  fields.Require(positive.empty() || !negative.empty(), "positive",
                 "needs 'negative' too: the text that means 0, or other for every other text");
  fields.Require(positive.empty() || positive != negative, "negative", "is the same as 'positive'");
  const char* const rules = "cannot be combined with another rule for the label";
  const bool has_texts = !positive.empty();
  fields.Require(values.empty() || (!has_texts && !has_above && !has_limit), "values", rules);
  fields.Require(!has_texts || (!has_above && !has_limit), "positive", rules);
  fields.Require(!has_above || !has_limit, "at_least", rules);
}

bool LabelRule::is_zero_one() const { return text().empty(); }

std::string LabelRule::text() const {
  if (!positive.empty()) return "positive " + positive;
  if (!std::isnan(positive_above)) return fmt::format("positive_above {}", positive_above);
  if (!std::isnan(at_least)) return fmt::format("at_least {}", at_least);
  // Labels that are 0 and 1 have always been recorded without a rule.
  return values.empty() || values == kDefault ? "" : "values " + values;
}

std::string RecordedLabelRule(const std::string& text,
                              const std::map<std::string, std::string>& parsing) {
  return text.empty() && !parsing.empty() ? fmt::format("values {}", kDefault) : text;
}

std::map<std::string, std::string> RecordedLabelRules(
    const std::string& first, const std::string& rule_of_first,
    const std::map<std::string, std::string>& further,
    const std::map<std::string, std::string>& parsing) {
  std::map<std::string, std::string> rules;
  if (!first.empty()) rules[first] = RecordedLabelRule(rule_of_first, parsing);
  for (const auto& [name, rule] : further) rules[name] = RecordedLabelRule(rule, parsing);
  return rules;
}

std::string LabelRule::Parse(std::string_view field, float* label, bool* is_other) const {
  *is_other = false;
  if (field.empty()) return "is not a label: it is missing";
  if (!positive.empty()) {
    *label = field == positive ? 1.0f : 0.0f;
    if (field == positive || field == negative) return "";
    *is_other = negative == kOther;
    if (*is_other) return "";
    return fmt::format("is neither '{}' nor '{}'", positive, negative);
  }
  if (!std::isnan(positive_above) || !std::isnan(at_least)) {
    const std::optional<double> value = ParseNumber(field);
    if (!value || std::isnan(*value)) return "is not a number";
    *label = *value > positive_above || *value >= at_least ? 1.0f : 0.0f;
    return "";
  }
  if (values == kNumber) {
    const std::optional<double> value = ParseNumber(field);
    if (!value || !IsNumberLabel(static_cast<float>(*value)))
      return fmt::format("is not a number from -{0} to {0}, as the label must be",
                         static_cast<int64_t>(kMaxNumberLabel));
    *label = static_cast<float>(*value) + 0.0f;  // no -0
    return "";
  }
  const Pair& pair = *PairNamed(values.empty() ? kDefault : std::string_view(values));
  *label = IsSame(field, pair.positive) ? 1.0f : 0.0f;
  if (*label == 1.0f || IsSame(field, pair.negative)) return "";
  if (!values.empty()) return fmt::format("is neither {} nor {}", pair.negative, pair.positive);
  return "is not 0 or 1; 'values', 'positive', 'positive_above' or 'at_least' in the schema may "
         "map it, and 'values: number' takes numbers as they are";
}

}  // namespace renzan
