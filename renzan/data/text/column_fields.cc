#include "renzan/data/text/column_fields.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/data/text/label_rule.h"
#include "renzan/data/text/parse_number.h"

namespace renzan {
namespace {

constexpr char kNotAWeight[] = "is not a weight: it must be a finite number from 0 on";
constexpr char kNotFinite[] = "is not a finite number";
constexpr char kOtherLists[] =
    "if the column's lists are written otherwise, correct its 'brackets' or 'separator' in the "
    "schema";

// For what is not a number of whole seconds since 1970, or "".
std::string AdviceOnSeconds(std::string_view field) {
  const std::optional<double> number = ParseNumber(field);
  if (!number) return "";
  return *number == std::floor(*number)
             ? "%s counts seconds: %Q counts milliseconds; divide microseconds by 1000 for it"
             : "with parts of a second, the format is %s.%f";
}

// What the numbers of each bucket become: (-inf, 18), [18, 65), [65, inf).
std::vector<std::string> BucketNames(const std::vector<double>& bounds) {
  std::vector<std::string> names;
  if (bounds.empty()) return names;
  names.push_back(fmt::format("(-inf, {})", bounds.front()));
  for (size_t i = 1; i < bounds.size(); ++i)
    names.push_back(fmt::format("[{}, {})", bounds[i - 1], bounds[i]));
  names.push_back(fmt::format("[{}, inf)", bounds.back()));
  return names;
}

}  // namespace

ColumnFields::ColumnFields(CsvSchema csv, std::string name, Labels labels)
    : name_(std::move(name)), labels_(labels), csv_(std::move(csv)) {
  if (labels_ == Labels::kRequired && csv_.label() == nullptr)
    Fail(ErrorCode::kConfig, "{}: no column has the role label; {}", name_, kUnlabelledAdvice);
  schema_.negatives_kept = csv_.negatives_kept;
}

void ColumnFields::Begin(const std::vector<std::string>* names) {
  if (names != nullptr) csv_.ExpandPatterns(*names, name_);
  for (const CsvColumn& column : csv_.columns)
    absent_.push_back(names != nullptr && MayBeAbsent(column) &&
                      std::find(names->begin(), names->end(), column.name) == names->end());
  first_label_ = csv_.label();
  CheckLabels();
  SetColumns();
}

// Without the first label, the data have none.
void ColumnFields::CheckLabels() const {
  if (first_label_ == nullptr || !absent_[static_cast<size_t>(first_label_ - csv_.columns.data())])
    return;
  for (size_t i = 0; i < csv_.columns.size(); ++i)
    if (csv_.columns[i].role == "label" && !absent_[i])
      Fail(ErrorCode::kConfig,
           "{}: the input has the label '{}', but not '{}', the first label of the schema: leave "
           "both out, or neither",
           name_, Escape(csv_.columns[i].name), Escape(first_label_->name));
}

void ColumnFields::SetColumns() {
  for (const CsvColumn& column : csv_.columns) {
    Date date{.format = DateFormat(column.date)};
    date.first_text = num_texts_;
    num_texts_ += column.parts.size();
    for (const CsvColumn& part : column.parts)
      date.slots.push_back(AddFeature(part, column.name + "." + part.name, csv_.ParsingOf(column)));
    dates_.push_back(std::move(date));
    buckets_.push_back(BucketNames(column.bounds));
    const bool is_absent = absent_[slots_.size()] != 0;
    const bool is_key = column.is_key() && !is_absent;
    key_slots_.push_back(is_key ? keys_.size() : kNoKey);
    if (is_key) keys_.push_back(column.name);
    slots_.push_back(is_absent ? 0 : AddFeature(column, column.name, csv_.ParsingOf(column)));
  }
  weighted_bags_ = WeightedBags(csv_.columns, slots_);
  const std::vector<DatasetLabel> labels = schema_.labels();
  may_lack_labels_ = !labels.empty() && std::all_of(labels.begin(), labels.end(),
                                                    [](const auto& each) { return each.optional; });
  // Where there is no other label, rows cannot lack it.
  schema_.label_optional &= labels.size() > 1;
}

// Returns its index in the row's vector for its role.
size_t ColumnFields::AddFeature(const CsvColumn& column, const std::string& name,
                                const std::string& parsing) {
  if (column.role == "skip" || column.role == "key" || column.role == "date") return 0;
  schema_.parsing[name] = parsing;
  if (column.role == "weight") {
    schema_.weight = name;
    return 0;
  }
  if (column.role == "label") {
    if (&column != first_label_) {
      schema_.further_labels.push_back(
          {.name = name, .rule = column.label.text(), .optional = column.optional});
      return schema_.further_labels.size() - 1;
    }
    schema_.label = name;
    schema_.label_rule = column.label.text();
    schema_.label_optional = column.optional;
    return 0;
  }
  if (column.role == "dense")
    return column.is_vector() ? AddVector(column, name) : AddDense(column, name);
  if (column.is_bag_weights()) return 0;
  const CsvColumn* const weights = csv_.WeightsOf(column);
  const bool multi_hot = column.role == "multi_hot";
  schema_.categorical.push_back({.name = name,
                                 .multi_hot = multi_hot,
                                 .table = column.table == name ? "" : column.table,
                                 .max_length = column.max_length,
                                 .weights = weights == nullptr ? "" : weights->name});
  unseen_shares_.push_back(column.unseen);
  return multi_hot ? num_multi_hot_++ : num_one_hot_++;
}

size_t ColumnFields::AddDense(const CsvColumn& column, const std::string& name) {
  transforms_.push_back(*DenseTransform::Parse(column.dense_transform()));
  schema_.dense.push_back(name);
  schema_.dense_transforms.push_back(transforms_.back().text());
  unscaled_slots_.push_back(num_unscaled_);
  num_unscaled_ += transforms_.back().needs_constants();
  return transforms_.size() - 1;
}

// Returns the index of its first number; the others follow.
size_t ColumnFields::AddVector(const CsvColumn& column, const std::string& name) {
  const DenseVector vector{
      .name = name, .first = transforms_.size(), .dimension = column.dimension};
  for (int64_t i = 0; i < vector.dimension; ++i) AddDense(column, vector.NameOf(i));
  schema_.vectors.push_back(vector);
  return vector.first;
}

// If the first file lacks it, so must the others.
bool ColumnFields::MayBeAbsent(const CsvColumn& column) const {
  return labels_ == Labels::kMayBeMissing && (column.role == "label" || column.role == "weight");
}

std::vector<std::string> ColumnFields::NamesLackedBy(const std::vector<std::string>& names) const {
  std::vector<std::string> lacked;
  for (size_t i = 0; i < csv_.columns.size(); ++i)
    if (!absent_[i] && std::find(names.begin(), names.end(), csv_.columns[i].name) == names.end())
      lacked.push_back(csv_.columns[i].name);
  return lacked;
}

std::string ColumnFields::SplitBy(const std::string& column) {
  std::vector<std::string> names;
  for (size_t i = 0; i < csv_.columns.size(); ++i) {
    if (absent_[i]) continue;
    names.push_back(csv_.columns[i].name);
    if (names.back() != column) continue;
    split_index_ = i;
    return csv_.columns[i].date;
  }
  FailNoSplitColumn(column, names);
}

void ColumnFields::Prepare(TextRow* row) const {
  row->dense.resize(schema_.dense.size());
  row->unscaled.resize(num_unscaled_);
  row->further_labels.resize(schema_.further_labels.size());
  row->one_hot.resize(num_one_hot_);
  row->multi_hot.resize(num_multi_hot_);
  row->bag_weights.resize(num_multi_hot_);
  row->keys.resize(keys_.size());
  row->texts.resize(num_texts_);
}

bool ColumnFields::ParseField(size_t index, std::string_view field, TextRow* row, BadRow* bad) {
  const CsvColumn& column = csv_.columns[index];
  if (is_key(index)) SetKey(index, field, row);
  if (index == split_index_) row->split = IsMissing(index, field) ? std::string_view() : field;
  if (column.role == "skip" || column.role == "key") return true;
  if (IsMissing(index, field)) field = {};
  if (column.role == "label") return ParseLabel(index, field, row, bad);
  if (column.role == "weight") return ParseWeight(index, field, row, bad);
  if (column.role == "date") return ParseDate(index, field, row, bad);
  if (column.is_vector()) return ParseVector(index, field, row, bad);
  if (column.role == "dense") return ParseDense(index, field, row, bad);
  if (column.role == "multi_hot" || column.is_bag_weights())
    return ParseBag(index, field, row, bad);
  if (!column.bounds.empty()) return ParseBucket(index, field, row, bad);
  SetValue(index, field, row);
  return true;
}

BagFormat ColumnFields::FormatOf(size_t index) const {
  const CsvColumn& column = csv_.columns[index];
  return {.separator = column.bag_separator(),
          .trim = csv_.trim,
          .brackets = column.brackets,
          .keep_empty = column.is_vector() || weighted_bags_.Has(index)};
}

bool ColumnFields::ParseBag(size_t index, std::string_view field, TextRow* row, BadRow* bad) {
  std::vector<std::string_view>& bag = BagOf(index, row);
  bag.clear();
  if (csv_.columns[index].brackets) SetList(index, row);
  const std::string problem = SplitBag(
      field, FormatOf(index), [&](std::string_view value) { return !KeepsInBag(index, value); },
      &bag);
  if (problem.empty()) return FinishBag(index, row, bad);
  Suggest(kOtherLists, bad);
  return Reject(field, problem, bad);
}

bool ColumnFields::FinishBag(size_t index, TextRow* row, BadRow* bad) const {
  if (weighted_bags_.Has(index)) {
    const std::string problem = weighted_bags_.Finish(
        index, row, [&](size_t bag, auto value) { return value.empty() || IsMissing(bag, value); });
    bad->reason = problem;
    return problem.empty();
  }

  const CsvColumn& column = csv_.columns[index];
  std::vector<std::string_view>& bag = BagOf(index, row);
  if (column.max_length == 0 || std::ssize(bag) <= column.max_length) return true;
  if (column.keep.empty()) {
    bad->reason = fmt::format("a sequence of {}, but max_length is {}",
                              Counted(bag.size(), "value"), column.max_length);
    bad->advice = "'keep: newest' or 'keep: oldest' in the schema shortens it";
    return false;
  }
  const auto extra = std::ssize(bag) - column.max_length;
  if (column.keep == "newest") {
    bag.erase(bag.begin(), bag.begin() + extra);
  } else {
    bag.resize(static_cast<size_t>(column.max_length));
  }
  return true;
}

bool ColumnFields::IsMissing(size_t index, std::string_view field) const {
  const std::vector<std::string>& missing = csv_.columns[index].missing;
  return std::find(missing.begin(), missing.end(), field) != missing.end();
}

bool ColumnFields::Reject(std::string_view field, std::string_view problem, BadRow* bad) {
  bad->reason = fmt::format("'{}' {}", Escape(ShortText(field, 40)), problem);
  return false;
}

bool ColumnFields::ParseLabel(size_t index, std::string_view field, TextRow* row,
                              BadRow* bad) const {
  const CsvColumn& column = csv_.columns[index];
  const LabelRule& rule = column.label;
  float& label = LabelOf(index, row);
  label = std::numeric_limits<float>::quiet_NaN();
  if (is_first_label(index)) row->other_label = {};
  if (field.empty() && column.optional) return true;
  bool is_other = false;
  const std::string problem = rule.Parse(field, &label, &is_other);
  if (is_other && is_first_label(index)) row->other_label = field;
  if (problem.empty()) return true;
  const bool several = !schema_.further_labels.empty();
  if (field.empty() && labels_ == Labels::kMayBeMissing)
    bad->advice = several && is_first_label(index) ? kEmptyLabelsAdvice : kEmptyLabelAdvice;
  else if (field.empty() && several)
    bad->advice = "'optional: true' in the schema allows rows without this label";
  if (!field.empty())
    Suggest("if the labels are written otherwise, correct the label's rule in the schema", bad);
  if (!field.empty() && !rule.positive.empty())
    bad->alternative = fmt::format(
        "'negative: other' in the schema would count this and every other text but '{}' as a "
        "negative",
        rule.positive);
  return Reject(field, problem, bad);
}

bool ColumnFields::HasLabel(const TextRow& row, BadRow* bad) const {
  if (!may_lack_labels_ || !std::isnan(row.label) ||
      std::any_of(row.further_labels.begin(), row.further_labels.end(),
                  [](float label) { return !std::isnan(label); }))
    return true;
  std::vector<std::string> names = schema_.label_names();
  for (std::string& name : names) name = Escape(name);
  bad->reason = fmt::format("has none of the labels {}, and nothing learns from such a row",
                            fmt::join(names, ", "));
  if (labels_ == Labels::kMayBeMissing) bad->advice = kEmptyLabelsAdvice;
  return false;
}

bool ColumnFields::ParseWeight(size_t index, std::string_view field, TextRow* row,
                               BadRow* bad) const {
  return SetWeight(index, ParseNumber(field), row, bad) || Reject(field, kNotAWeight, bad);
}

bool ColumnFields::SetWeight(size_t /*index*/, std::optional<double> value, TextRow* row,
                             BadRow* bad) const {
  row->weight = static_cast<float>(value.value_or(-1)) + 0.0f;  // no -0
  if (std::isfinite(row->weight) && row->weight >= 0) return true;
  Suggest("if the column weighs no samples, give it another role in the schema", bad);
  return Reject(value ? fmt::format("{}", *value) : "", kNotAWeight, bad);
}

bool ColumnFields::ParseDense(size_t index, std::string_view field, TextRow* row,
                              BadRow* bad) const {
  std::optional<double> value;
  if (!field.empty()) {
    value = ParseNumber(field);
    if (!value) {
      Suggest(
          "if the column holds no numbers, give it another role in the schema: categorical, "
          "multi_hot, date, key or skip",
          bad);
      return Reject(field, "is not a number", bad);
    }
  }
  return SetDenseSlot(slots_[index], value, row) || Reject(field, kNotFinite, bad);
}

size_t ColumnFields::SetDenseColumn(size_t index, std::span<const double> values,
                                    std::span<TextRow> rows) {
  const size_t slot = slots_[index];
  transformed_.resize(values.size());
  transforms_[slot].Apply(values, transformed_);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i]) || !std::isfinite(transformed_[i])) return i;
    rows[i].dense[slot] = transformed_[i];
  }
  return values.size();
}

bool ColumnFields::RejectDense(double value, BadRow* bad) {
  return Reject(fmt::format("{}", value), kNotFinite, bad);
}

bool ColumnFields::ParseVector(size_t index, std::string_view field, TextRow* row, BadRow* bad) {
  if (field.empty()) {
    SetMissingVector(index, row);
    return true;
  }
  components_.clear();
  const std::string problem = SplitBag(
      field, FormatOf(index), [](std::string_view) { return false; }, &components_);
  if (!problem.empty()) {
    Suggest(kOtherLists, bad);
    return Reject(field, problem, bad);
  }
  if (!CheckVectorLength(index, std::ssize(components_), bad)) {
    Suggest(kOtherLists, bad);
    return false;
  }
  for (size_t i = 0; i < components_.size(); ++i) {
    const std::optional<double> value = ParseNumber(components_[i]);
    const auto position = static_cast<int64_t>(i);
    if (!value)
      return Reject(components_[i],
                    fmt::format("is not a number, at position {} of the vector", position), bad);
    if (!SetComponent(index, position, *value, row, bad)) return false;
  }
  return true;
}

void ColumnFields::SetMissingVector(size_t index, TextRow* row) const {
  for (size_t i = 0; i < static_cast<size_t>(csv_.columns[index].dimension); ++i)
    SetDenseSlot(slots_[index] + i, std::nullopt, row);
}

bool ColumnFields::CheckVectorLength(size_t index, int64_t length, BadRow* bad) const {
  const int64_t dimension = csv_.columns[index].dimension;
  if (length == dimension) return true;
  bad->reason =
      fmt::format("a vector of {}, but dimension is {}", Counted(length, "number"), dimension);
  return false;
}

bool ColumnFields::SetComponent(size_t index, int64_t position, double value, TextRow* row,
                                BadRow* bad) const {
  return SetDenseSlot(slots_[index] + static_cast<size_t>(position), value, row) ||
         Reject(fmt::format("{}", value),
                fmt::format("{}, at position {} of the vector", kNotFinite, position), bad);
}

bool ColumnFields::ParseBucket(size_t index, std::string_view field, TextRow* row,
                               BadRow* bad) const {
  if (field.empty()) return SetBucket(index, std::nullopt, row, bad);
  if (const std::optional<double> value = ParseNumber(field))
    return SetBucket(index, value, row, bad);
  Suggest("if the column holds no numbers, remove 'buckets' from it in the schema", bad);
  return Reject(field, "is not a number, of which 'buckets' makes categories", bad);
}

bool ColumnFields::SetBucket(size_t index, std::optional<double> value, TextRow* row,
                             BadRow* bad) const {
  if (value && !std::isfinite(*value)) return Reject(fmt::format("{}", *value), kNotFinite, bad);
  const std::vector<double>& bounds = csv_.columns[index].bounds;
  std::string_view bucket;
  if (value) {
    const auto above = std::upper_bound(bounds.begin(), bounds.end(), *value);
    bucket = buckets_[index][static_cast<size_t>(above - bounds.begin())];
  }
  SetValue(index, bucket, row);
  return true;
}

bool ColumnFields::ParseDate(size_t index, std::string_view field, TextRow* row, BadRow* bad) {
  const DateFormat& format = dates_[index].format;
  std::optional<DateParts> parsed;
  if (!field.empty()) {
    parsed = format.Parse(field);
    if (!parsed) {
      bad->alternative = "if the format is wrong, correct the column's 'date' in the schema";
      if (format.text() == "%s") bad->advice = AdviceOnSeconds(field);
      return Reject(field, fmt::format("is not a date of the format '{}'", format.text()), bad);
    }
  }
  SetDate(index, parsed, row);
  return true;
}

void ColumnFields::SetDate(size_t index, const std::optional<DateParts>& value,
                           TextRow* row) const {
  const Date& date = dates_[index];
  const std::vector<CsvColumn>& parts = csv_.columns[index].parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    std::optional<int64_t> number;
    if (value)
      number = parts[i].name == "day"       ? value->day
               : parts[i].name == "weekday" ? value->weekday
                                            : value->hour;
    if (parts[i].role == "dense") {
      SetDenseSlot(date.slots[i], number, row);
    } else {
      std::string& text = row->texts[date.first_text + i];
      text = number ? fmt::format("{}", *number) : "";
      row->one_hot[date.slots[i]] = text;
    }
  }
}

}  // namespace renzan
