#include "renzan/data/arrow/arrow_values.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <utility>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/data/text/parse_number.h"

namespace renzan {
namespace {

struct PlainType {
  const char* format;
  ArrowKind kind;
  const char* name;
};
constexpr PlainType kPlainTypes[] = {
    {"n", ArrowKind::kNull, "null"},        {"b", ArrowKind::kBool, "bool"},
    {"c", ArrowKind::kInt8, "int8"},        {"C", ArrowKind::kUint8, "uint8"},
    {"s", ArrowKind::kInt16, "int16"},      {"S", ArrowKind::kUint16, "uint16"},
    {"i", ArrowKind::kInt32, "int32"},      {"I", ArrowKind::kUint32, "uint32"},
    {"l", ArrowKind::kInt64, "int64"},      {"L", ArrowKind::kUint64, "uint64"},
    {"f", ArrowKind::kFloat, "float32"},    {"g", ArrowKind::kDouble, "float64"},
    {"u", ArrowKind::kText, "string"},      {"z", ArrowKind::kText, "binary"},
    {"U", ArrowKind::kLargeText, "string"}, {"Z", ArrowKind::kLargeText, "binary"},
    {"vu", ArrowKind::kTextView, "string"}, {"vz", ArrowKind::kTextView, "binary"},
    {"tdD", ArrowKind::kDate32, "date"},    {"tdm", ArrowKind::kDate64, "date"},
    {"+l", ArrowKind::kList, "list"},       {"+L", ArrowKind::kLargeList, "list"}};

// What types are called that no import takes, by how their format begins.
constexpr std::pair<const char*, const char*> kOtherNames[] = {
    {"e", "float16"},          {"d:", "decimal"},  {"w:", "fixed-size binary"},
    {"tt", "time of day"},     {"tD", "duration"}, {"ti", "interval"},
    {"+s", "struct"},          {"+m", "map"},      {"+u", "union"},
    {"+r", "run-end encoded"}, {"+v", "list view"}};

constexpr std::pair<char, int64_t> kUnits[] = {
    {'s', 1}, {'m', 1000}, {'u', 1'000'000}, {'n', 1'000'000'000}};

ArrowType ListOf(ArrowType type, const ArrowSchema& schema) {
  if (schema.n_children != 1) return {.name = "list without items"};
  type.item = std::make_unique<ArrowType>(ArrowType::Of(*schema.children[0]));
  type.name = "list of " + type.item->name;
  return type;
}

ArrowType PlainTypeOf(const ArrowSchema& schema) {
  const std::string_view format = schema.format == nullptr ? "" : schema.format;
  for (const PlainType& plain : kPlainTypes) {
    if (format != plain.format) continue;
    ArrowType type{.kind = plain.kind, .name = plain.name};
    if (type.kind == ArrowKind::kDate64) type.units_per_second = 1000;
    return type.is_list() ? ListOf(std::move(type), schema) : std::move(type);
  }
  for (const auto& [letter, units] : kUnits)
    if (format.size() >= 4 && format.starts_with("ts") && format[2] == letter && format[3] == ':')
      return {.kind = ArrowKind::kTimestamp,
              .name = "timestamp",
              .units_per_second = units,
              .zone = std::string(format.substr(4))};
  if (format.starts_with("+w:")) {
    ArrowType type{.kind = ArrowKind::kFixedList};
    const auto [end, error] =
        std::from_chars(format.data() + 3, format.data() + format.size(), type.list_size);
    if (error == std::errc() && end == format.data() + format.size() && type.list_size >= 0)
      return ListOf(std::move(type), schema);
  }
  for (const auto& [begin, name] : kOtherNames)
    if (format.starts_with(begin)) return {.name = name};
  return {.name = fmt::format("'{}'", Escape(format))};
}

[[noreturn]] void FailCorrupt(const std::string& column, const std::string& what) {
  Fail(ErrorCode::kData,
       "column '{}': the stream's array is not as Arrow's C data interface says: {}",
       Escape(column), what);
}

}  // namespace

ArrowType ArrowType::Of(const ArrowSchema& schema) {
  ArrowType type = PlainTypeOf(schema);
  if (schema.dictionary == nullptr) return type;
  if (!type.is_integer()) return {.name = "dictionary with indices of " + type.name};
  ArrowType values = Of(*schema.dictionary);
  if (values.is_encoded() || values.is_list()) return {.name = "dictionary of " + values.name};
  values.index = type.kind;
  return values;
}

void ArrowValues::Bind(const ArrowType& type, const ArrowArray& array, const std::string& column) {
  kind_ = type.kind;
  index_ = type.index;
  units_per_second_ = type.units_per_second;
  list_size_ = type.list_size;
  length_ = array.length;
  offset_ = array.offset;
  all_null_ = kind_ == ArrowKind::kNull && !is_encoded();
  if (all_null_) return;
  if (length_ < 0 || offset_ < 0) FailCorrupt(column, "a length or offset below 0");
  const ArrowKind stored = is_encoded() ? index_ : kind_;
  const bool is_list = type.is_list(), has_bytes = type.is_text() && !is_encoded();
  const int64_t wanted = stored == ArrowKind::kFixedList               ? 1
                         : has_bytes && stored != ArrowKind::kTextView ? 3
                                                                       : 2;
  if (array.n_buffers < wanted)
    FailCorrupt(column, fmt::format("{} buffers instead of {}", array.n_buffers, wanted));
  validity_ = array.null_count == 0 ? nullptr : array.buffers[0];
  data_ = wanted > 1 ? array.buffers[1] : nullptr;
  bytes_ = wanted > 2 ? array.buffers[2] : nullptr;
  buffers_ = array.buffers;
  if (length_ > 0 && wanted > 1 && data_ == nullptr) FailCorrupt(column, "a buffer is missing");
  const ArrowArray* const inner = is_encoded()                       ? array.dictionary
                                  : is_list && array.n_children == 1 ? array.children[0]
                                                                     : nullptr;
  if (!is_list && !is_encoded()) return;
  if (inner == nullptr) FailCorrupt(column, "it has no values");
  if (!values_) values_ = std::make_unique<ArrowValues>();
  if (is_list) return values_->Bind(*type.item, *inner, column);
  ArrowType plain{.kind = type.kind, .units_per_second = type.units_per_second};
  values_->Bind(plain, *inner, column);
}

int64_t ArrowValues::IndexOf(int64_t at) const {
  const int64_t index = VisitNumber(index_, data_, offset_ + at,
                                    [](auto value) { return static_cast<int64_t>(value); });
  if (index < 0 || index >= values_->length_) [[unlikely]]
    Fail(ErrorCode::kData, "an index of a dictionary is {}, outside [0, {})", index,
         values_->length_);
  return index;
}

template <typename Offset>
void ArrowValues::OffsetsAt(int64_t at, int64_t* begin, int64_t* end) const {
  Offset offsets[2];
  std::memcpy(offsets, static_cast<const char*>(data_) + at * int64_t{sizeof(Offset)},
              sizeof offsets);
  if (offsets[0] < 0 || offsets[1] < offsets[0]) [[unlikely]]
    Fail(ErrorCode::kData, "a value of the stream's array ends at {}, before it begins at {}",
         offsets[1], offsets[0]);
  *begin = offsets[0];
  *end = offsets[1];
}
template void ArrowValues::OffsetsAt<int32_t>(int64_t, int64_t*, int64_t*) const;

void ArrowValues::ListRange(int64_t at, int64_t* begin, int64_t* end) const {
  if (kind_ == ArrowKind::kList) {
    OffsetsAt<int32_t>(offset_ + at, begin, end);
  } else if (kind_ == ArrowKind::kLargeList) {
    OffsetsAt<int64_t>(offset_ + at, begin, end);
  } else {
    *begin = (offset_ + at) * list_size_;
    *end = *begin + list_size_;
  }
  if (*end > values_->length_) [[unlikely]]
    Fail(ErrorCode::kData, "a list of the stream's array ends at {} of {}", *end,
         Counted(values_->length_, "value"));
}

// Texts of up to 12 bytes are in the view, others in a buffer that it names.
std::string_view ArrowValues::ViewOf(int64_t at) const {
  constexpr int64_t kViewBytes = 16;
  constexpr int32_t kInlineBytes = 12;
  const char* const view = static_cast<const char*>(data_) + at * kViewBytes;
  int32_t words[4];
  std::memcpy(words, view, sizeof words);
  if (words[0] <= kInlineBytes) return {view + sizeof words[0], static_cast<size_t>(words[0])};
  // The first two buffers are the validity and the views.
  const char* const buffer = static_cast<const char*>(buffers_[2 + words[2]]);
  return {buffer + words[3], static_cast<size_t>(words[0])};
}

std::string_view ArrowValues::OtherText(int64_t at, char* scratch) const {
  if (is_encoded()) return values_->Text(IndexOf(at), scratch);
  const int64_t place = offset_ + at;
  switch (kind_) {
    case ArrowKind::kLargeText:
      return TextOf<int64_t>(place);
    case ArrowKind::kTextView:
      return ViewOf(place);
    case ArrowKind::kBool:
      return Bit(data_, place) ? "true" : "false";
    case ArrowKind::kDate32:
    case ArrowKind::kDate64:
    case ArrowKind::kTimestamp:
      return TimeText(at, scratch);
    case ArrowKind::kFloat:
    case ArrowKind::kDouble: {
      // As 5, not 5.0: an integer that became a float, because others are null, is the same value.
      const double number = Number(at);
      constexpr double kMaxWhole = 0x1.0p63;
      const char* end = scratch;
      if (number == std::trunc(number) && std::fabs(number) < kMaxWhole)
        end = std::to_chars(scratch, scratch + kMaxNumber, static_cast<int64_t>(number)).ptr;
      else if (kind_ == ArrowKind::kFloat)
        end = std::to_chars(scratch, scratch + kMaxNumber, static_cast<float>(number)).ptr;
      else
        end = std::to_chars(scratch, scratch + kMaxNumber, number).ptr;
      return {scratch, static_cast<size_t>(end - scratch)};
    }
    default:
      return IntegerText(at, scratch);
  }
}

double ArrowValues::Number(int64_t at) const {
  if (is_encoded()) return values_->Number(IndexOf(at));
  const int64_t place = offset_ + at;
  if (kind_ == ArrowKind::kBool) return Bit(data_, place) ? 1 : 0;
  if (kind_ != ArrowKind::kFloat)
    return VisitNumber(kind_, data_, place, [](auto value) { return static_cast<double>(value); });
  float number = 0;
  std::memcpy(&number, static_cast<const char*>(data_) + place * int64_t{sizeof number},
              sizeof number);
  // 0.1 as float32 means the number 0.1, as it does in text, not the float32 next to it.
  constexpr float kExact = 0x1.0p24f;
  if (number == std::trunc(number) && std::fabs(number) <= kExact) return number;
  char text[kMaxNumber];
  const char* const end = std::to_chars(text, text + sizeof text, number).ptr;
  return ParseNumber({text, static_cast<size_t>(end - text)}).value_or(number);
}

int64_t ArrowValues::Seconds(int64_t at) const {
  if (is_encoded()) return values_->Seconds(IndexOf(at));
  const int64_t value = VisitNumber(kind_, data_, offset_ + at,
                                    [](auto number) { return static_cast<int64_t>(number); });
  constexpr int64_t kSecondsPerDay = 86'400;
  if (kind_ == ArrowKind::kDate32) return value * kSecondsPerDay;
  const int64_t rest = (value % units_per_second_ + units_per_second_) % units_per_second_;
  return (value - rest) / units_per_second_;
}

// 2024-01-31, or 2024-01-31 12:34:56, with the parts of the second if there are any.
std::string_view ArrowValues::TimeText(int64_t at, char* scratch) const {
  const int64_t seconds = Seconds(at);
  const auto time = std::chrono::sys_seconds(std::chrono::seconds(seconds));
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  char* end =
      fmt::format_to_n(scratch, kMaxNumber, "{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                       static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()))
          .out;
  if (kind_ == ArrowKind::kTimestamp) {
    const int64_t of_day = (time - day).count();
    const int64_t value = VisitNumber(kind_, data_, offset_ + at,
                                      [](auto number) { return static_cast<int64_t>(number); });
    const auto left = static_cast<size_t>(scratch + kMaxNumber - end);
    end = fmt::format_to_n(end, left, " {:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60,
                           of_day % 60)
              .out;
    int digits = 0;
    for (int64_t units = units_per_second_; units > 1; units /= 10) ++digits;
    if (const int64_t parts = value - seconds * units_per_second_; parts != 0)
      end = fmt::format_to_n(end, static_cast<size_t>(scratch + kMaxNumber - end), ".{:0{}}", parts,
                             digits)
                .out;
  }
  return {scratch, static_cast<size_t>(end - scratch)};
}

}  // namespace renzan
