#include "renzan/data/arrow/arrow_column.h"

#include <algorithm>
#include <utility>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/data/row_split.h"
#include "renzan/data/text/parse_number.h"

namespace renzan {
namespace {

bool IsUtc(std::string_view zone) {
  static constexpr std::string_view kUtc[] = {"",        "UTC", "Etc/UTC", "GMT",
                                              "Etc/GMT", "Z",   "+00:00",  "-00:00"};
  return std::find(std::begin(kUtc), std::end(kUtc), zone) != std::end(kUtc);
}

}  // namespace

ArrowColumn::ArrowColumn(ColumnFields& fields, std::string name, std::optional<size_t> index,
                         const ArrowSchema& schema)
    : fields_(&fields), name_(std::move(name)), type_(ArrowType::Of(schema)) {
  if (!index) return;
  index_ = *index;
  is_key_ = fields_->is_key(index_);
  use_ = UseOf(described());
  stays_float_ = use_ == Use::kVector && described().is_unchanged() &&
                 type_.item->kind == ArrowKind::kFloat && !type_.item->is_encoded();
  if (use_ == Use::kInteger) integers_.resize(kMaxRows * ArrowValues::kMaxNumber);
  const LabelRule& rule = described().label;
  words_ = described().role != "label" || !rule.positive.empty() || rule.values == "no/yes" ||
           rule.values == "false/true";
  for (const std::string& text : described().missing)
    if (const std::optional<double> number = ParseNumber(text)) missing_.push_back(*number);
}

ArrowColumn::Use ArrowColumn::UseOf(const CsvColumn& described) const {
  const ArrowType& type = type_;
  if (described.role == "skip" || described.role == "key") return Use::kSkip;
  if (type.is_list()) return described.is_vector() ? Use::kVector : Use::kBag;
  if (!described.bounds.empty()) return type.is_number() ? Use::kBucket : Use::kText;
  if (described.role == "label" && described.label.is_zero_one() && described.missing.empty() &&
      !is_key_ && !type.is_encoded() && (type.is_integer() || type.kind == ArrowKind::kBool))
    return Use::kLabel;
  if (described.role == "dense" && type.is_number()) return Use::kDense;
  if (described.role == "weight" && type.is_number()) return Use::kWeight;
  if (described.role == "date" && type.is_time()) return Use::kTime;
  if (described.role == "categorical" || described.role == "multi_hot") {
    if (type.is_float()) return Use::kFloatText;
    if (described.role == "categorical" && !type.is_encoded() && described.missing.empty() &&
        !is_key_) {
      if (type.is_integer()) return Use::kInteger;
      if (type.is_text() && !fields_->csv().trim) return Use::kPlainText;
    }
  }
  return Use::kText;
}

void ArrowColumn::CheckType() const {
  if (use_ == Use::kSkip && !is_key_ && !splits_) return;
  const CsvColumn& described = this->described();
  const ArrowType& type = type_;
  std::string advice;
  if (type.kind == ArrowKind::kOther || (type.is_list() && type.item->is_list()) ||
      (type.is_list() && (type.item->kind == ArrowKind::kOther || type.item->is_time()))) {
    advice = "cast it to integers, float64 or strings, or lists of them";
  } else if (type.is_list() && !described.is_list()) {
    advice = "lists have the role multi_hot, or dense with their length as the dimension";
  } else if (described.is_vector() && !type.is_list() && !type.is_text() &&
             type.kind != ArrowKind::kNull) {
    advice = fmt::format("cast it to lists of {}", Counted(described.dimension, "number"));
  } else if (described.is_vector() && type.is_list() && !type.item->is_number()) {
    advice = "cast its items to float32";
  } else if (described.is_bag_weights() && type.is_list() && type.item->kind == ArrowKind::kBool) {
    advice = "weights are numbers: cast its items to float32";
  } else if (described.is_vector() && type.kind == ArrowKind::kFixedList &&
             type.list_size != described.dimension) {
    advice = fmt::format("its lists have {}, but dimension is {}",
                         Counted(type.list_size, "number"), described.dimension);
  } else if (type.is_list() && is_key_) {
    advice = "a key needs a text: remove 'key: true'";
  } else if (described.role == "date" && type.is_time()) {
    const bool has_hour = std::any_of(described.parts.begin(), described.parts.end(),
                                      [](const auto& part) { return part.name == "hour"; });
    if (has_hour && type.kind != ArrowKind::kTimestamp)
      advice = "dates have no hour: remove it from 'parts', or cast the column to a timestamp";
  } else if (type.is_time() && described.role != "date" && described.role != "categorical" &&
             described.role != "skip" && !is_key_) {
    advice = "dates and times have the role date";
  }
  if (advice.empty() && type.is_time() && !IsUtc(type.zone))
    Fail(ErrorCode::kConfig,
         "column '{}' of the table has the time zone '{}': convert it to UTC, or to the local "
         "time without a zone, so that its days and hours are those that you mean",
         Escape(name_), Escape(type.zone));
  if (advice.empty()) return;
  Fail(ErrorCode::kConfig, "column '{}' of the table has the type {}, and in {} the role {}: {}",
       Escape(name_), type.name, fields_->name(), described.role, advice);
}

std::string ArrowColumn::SplitBy(const std::string& format) {
  splits_ = true;
  if (type_.is_list()) Fail(ErrorCode::kUsage, "--split: column '{}' holds lists", Escape(name_));
  CheckType();
  if (type_.is_time()) return type_.kind == ArrowKind::kTimestamp ? kIsoTimes : kIsoDates;
  return format.empty() && (type_.is_integer() || type_.is_float()) ? kNumbers : format;
}

void ArrowColumn::Bind(const ArrowArray* array, int64_t end) {
  values_.Bind(type_, array, name_);
  if (values_.length() < end)
    Fail(ErrorCode::kData, "column '{}' has {} in a batch of {}", Escape(name_),
         Counted(values_.length(), "value"), Counted(end, "row"));
}

}  // namespace renzan
