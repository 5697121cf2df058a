#include "renzan/data/text/weighted_bags.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/data/text/parse_number.h"

namespace renzan {

WeightedBags::WeightedBags(const std::vector<CsvColumn>& columns, const std::vector<size_t>& slots)
    : of_column_(columns.size(), kNone) {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (!columns[i].is_bag_weights()) continue;
    const auto bag = std::find_if(columns.begin(), columns.end(), [&](const CsvColumn& column) {
      return column.name == columns[i].bag;
    });
    CHECK(bag != columns.end());
    const auto at = static_cast<size_t>(bag - columns.begin());
    of_column_[i] = of_column_[at] = bags_.size();
    bags_.push_back(
        {.column = at, .slot = slots[at], .name = bag->name, .weights_name = columns[i].name});
  }
}

std::vector<std::string_view>* WeightedBags::TextsOf(size_t column, TextRow* row) const {
  if (!Has(column)) return nullptr;
  const size_t index = of_column_[column];
  TextRow::UnmatchedBag& texts = row->unmatched_bags[index];
  return column == bags_[index].column ? &texts.values : &texts.weights;
}

void WeightedBags::SetList(size_t column, TextRow* row) const {
  if (Has(column)) row->unmatched_bags[of_column_[column]].are_lists = true;
}

void WeightedBags::BeginRow(TextRow* row) const {
  row->unmatched_bags.resize(bags_.size());
  for (TextRow::UnmatchedBag& texts : row->unmatched_bags) {
    texts.finished = 0;
    texts.are_lists = false;
  }
}

std::string WeightedBags::Finish(size_t column, TextRow* row,
                                 const std::function<bool(size_t, std::string_view)>& drops) const {
  const Bag& bag = bags_[of_column_[column]];
  TextRow::UnmatchedBag& texts = row->unmatched_bags[of_column_[column]];
  if (++texts.finished < 2) return "";
  std::vector<std::string_view>& kept = row->multi_hot[bag.slot];
  std::vector<float>& weights = row->bag_weights[bag.slot];
  kept.clear();
  weights.clear();
  const auto is_dropped = [&](std::string_view value) { return drops(bag.column, value); };
  // Where no value is left, a field without brackets may have been empty or one value that is
  // missing: it has one weight or none.
  const bool none = std::all_of(texts.values.begin(), texts.values.end(), is_dropped);
  if (texts.weights.size() != texts.values.size() &&
      !(none && !texts.are_lists && texts.weights.size() <= 1 && texts.values.size() <= 1))
    return fmt::format("'{}' has {}, but '{}' has {}", Escape(bag.name),
                       Counted(texts.values.size(), "value"), Escape(bag.weights_name),
                       Counted(texts.weights.size(), "weight"));
  for (size_t i = 0; i < texts.values.size(); ++i) {
    if (is_dropped(texts.values[i])) continue;
    const std::optional<double> number = ParseNumber(texts.weights[i]);
    const float weight = static_cast<float>(number.value_or(0)) + 0.0f;  // no -0
    if (!number || !std::isfinite(weight))
      return fmt::format(
          "the weight '{}' in '{}', at position {} of the bag, is not a finite number",
          Escape(ShortText(texts.weights[i], 40)), Escape(bag.weights_name), i);
    kept.push_back(texts.values[i]);
    weights.push_back(weight);
  }
  return "";
}

}  // namespace renzan
