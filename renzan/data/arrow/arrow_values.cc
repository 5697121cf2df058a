#include "renzan/data/arrow/arrow_values.h"

#include <algorithm>
#include <bit>
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
  if (schema.n_children != 1 || schema.children == nullptr || schema.children[0] == nullptr)
    return {.name = "list without items"};
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

// No buffer is so long; sums and sizes in bytes of less do not overflow.
constexpr int64_t kMaxArrayLength = int64_t{1} << 56;

int64_t At64(const void* numbers, int64_t at) {
  return VisitNumber(ArrowKind::kInt64, numbers, at,
                     [](auto number) { return static_cast<int64_t>(number); });
}

// How many buffers are read.
int64_t NumBuffers(ArrowKind stored) {
  if (stored == ArrowKind::kFixedList) return 1;
  const bool is_text = stored >= ArrowKind::kText && stored <= ArrowKind::kTextView;
  return is_text ? 3 : 2;
}

// 0.1 as float32 means the number 0.1, as it does in text, not the float32 next to it: the double
// nearest to the shortest text that means this float32.
double NumberOfFloat(float number) {
  constexpr float kExact = 0x1.0p24f;
  const double exact = number;
  if (std::fabs(number) <= kExact) {
    if (number == std::trunc(number)) return exact;
    // The fewest decimals that mean it are its shortest text. Both the product and the power of ten
    // are exact in double, so that the quotient is the double nearest to the decimal number. Not
    // for a power of two, whose neighbours differ in distance, nor for a tie.
    constexpr double kPowers[] = {1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10};
    constexpr double kRounds = 0x1.8p52;  // added, it leaves no bit for a fraction
    constexpr uint32_t kFraction = 0x007F'FFFF;
    const auto bits = std::bit_cast<uint32_t>(number);
    const bool is_power = (bits & kFraction) == 0;
    // What is further from it than half the distance to its neighbours, of which this is a bit
    // more, is another float32: most divisions are not needed.
    const double power_below = std::bit_cast<float>(bits & ~kFraction & 0x7FFF'FFFF);
    const double nearest = power_below * 0x1.02p-24;
    for (size_t i = 0; i < std::size(kPowers) && !is_power; ++i) {
      const double product = exact * kPowers[i];
      if (std::fabs(product) > kRounds / 4) break;
      const double whole = (product + kRounds) - kRounds;
      if (std::fabs(product - whole) > nearest * kPowers[i]) continue;
      const double decimal = whole / kPowers[i];
      if (static_cast<float>(decimal) != number) continue;
      if (std::fabs(product - whole) == 0.5) break;
      return decimal;
    }
  }
  char text[ArrowValues::kMaxNumber];
  const char* const end = std::to_chars(text, text + sizeof text, number).ptr;
  return ParseNumber({text, static_cast<size_t>(end - text)}).value_or(number);
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

void ArrowValues::FailMalformed(const std::string& what) const {
  Fail(ErrorCode::kData,
       "column '{}': the stream's array is malformed: {}; its producer breaks Arrow's C data "
       "interface",
       Escape(column_), what);
}

void ArrowValues::Bind(const ArrowType& type, const ArrowArray* array, const std::string& column) {
  column_ = column;
  kind_ = type.kind;
  index_ = type.index;
  units_per_second_ = type.units_per_second;
  list_size_ = type.list_size;
  if (array == nullptr) FailMalformed("it is NULL");
  length_ = array->length;
  offset_ = array->offset;
  if (length_ < 0 || offset_ < 0) FailMalformed("a length or offset below 0");
  if (length_ > kMaxArrayLength || offset_ > kMaxArrayLength)
    FailMalformed(fmt::format("it has the length {} and the offset {}", length_, offset_));
  all_null_ = kind_ == ArrowKind::kNull && !is_encoded();
  if (all_null_) return;
  BindBuffers(*array);
  if (!is_encoded() && !type.is_list()) return;
  if (!values_) values_ = std::make_unique<ArrowValues>();
  if (is_encoded()) {
    if (array->dictionary == nullptr) FailMalformed("it has no dictionary");
    const ArrowType plain{.kind = type.kind, .units_per_second = type.units_per_second};
    return values_->Bind(plain, array->dictionary, column);
  }
  if (array->n_children != 1 || array->children == nullptr) FailMalformed("a list has no values");
  values_->Bind(*type.item, array->children[0], column);
  if (kind_ == ArrowKind::kFixedList && list_size_ > 0 &&
      offset_ + length_ > values_->length_ / list_size_)
    FailMalformed(fmt::format("{} of {} are more than its {}", Counted(offset_ + length_, "list"),
                              list_size_, Counted(values_->length_, "value")));
}

void ArrowValues::BindBuffers(const ArrowArray& array) {
  const ArrowKind stored = is_encoded() ? index_ : kind_;
  const int64_t wanted = NumBuffers(stored);
  if (array.n_buffers < wanted || array.buffers == nullptr)
    FailMalformed(fmt::format("it has {} instead of {}",
                              Counted(array.buffers == nullptr ? 0 : array.n_buffers, "buffer"),
                              wanted));
  validity_ = array.null_count == 0 ? nullptr : array.buffers[0];
  if (array.null_count > 0 && length_ > 0 && validity_ == nullptr)
    FailMalformed("values are null, and the buffer that says which is NULL");
  data_ = wanted > 1 ? array.buffers[1] : nullptr;
  bytes_ = wanted > 2 ? array.buffers[2] : nullptr;
  if (length_ > 0 && wanted > 1 && data_ == nullptr) FailMalformed("a buffer is NULL");
  if (stored == ArrowKind::kTextView)
    BindViews(array);
  else if (stored == ArrowKind::kText || stored == ArrowKind::kList)
    BindOffsets<int32_t>();
  else if (stored == ArrowKind::kLargeText || stored == ArrowKind::kLargeList)
    BindOffsets<int64_t>();
}

// All texts and lists lie between the first offset and the last.
template <typename Offset>
void ArrowValues::BindOffsets() {
  first_ = last_ = 0;
  if (length_ == 0) return;
  const auto load = [&](int64_t at) -> int64_t {
    Offset offset = 0;
    std::memcpy(&offset, static_cast<const char*>(data_) + at * int64_t{sizeof offset},
                sizeof offset);
    return offset;
  };
  first_ = load(offset_);
  last_ = load(offset_ + length_);
  if (first_ < 0 || last_ < first_)
    FailMalformed(fmt::format("its values begin at {} and end at {}", first_, last_));
  const bool is_text = kind_ == ArrowKind::kText || kind_ == ArrowKind::kLargeText;
  if (is_text && last_ > first_ && bytes_ == nullptr) FailMalformed("the buffer of texts is NULL");
}

// The first two buffers are the validity and the views, the last one holds the sizes of those
// between.
void ArrowValues::BindViews(const ArrowArray& array) {
  constexpr int64_t kOthers = 3;
  num_view_buffers_ = array.n_buffers - kOthers;
  view_buffers_ = array.buffers + 2;
  view_sizes_ = array.buffers[array.n_buffers - 1];
  if (num_view_buffers_ > 0 && view_sizes_ == nullptr)
    FailMalformed("the sizes of its buffers are NULL");
  for (int64_t i = 0; i < num_view_buffers_; ++i)
    if (const int64_t size = At64(view_sizes_, i);
        size < 0 || (size > 0 && view_buffers_[i] == nullptr))
      FailMalformed(fmt::format("its buffer {} of texts has the size {}{}", i, size,
                                view_buffers_[i] == nullptr ? " and is NULL" : ""));
}

int64_t ArrowValues::IndexOf(int64_t at) const {
  const int64_t index = VisitNumber(index_, data_, offset_ + at,
                                    [](auto value) { return static_cast<int64_t>(value); });
  if (index < 0 || index >= values_->length_) [[unlikely]]
    FailMalformed(
        fmt::format("an index is {}, outside the dictionary's [0, {})", index, values_->length_));
  return index;
}

template <typename Offset>
void ArrowValues::OffsetsAt(int64_t at, int64_t* begin, int64_t* end) const {
  Offset offsets[2];
  std::memcpy(offsets, static_cast<const char*>(data_) + at * int64_t{sizeof(Offset)},
              sizeof offsets);
  if (offsets[0] < first_ || offsets[1] < offsets[0] || offsets[1] > last_) [[unlikely]]
    FailMalformed(fmt::format("value {} is [{}, {}) of [{}, {})", at - offset_, offsets[0],
                              offsets[1], first_, last_));
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
    FailMalformed(
        fmt::format("list {} ends at {} of {}", at, *end, Counted(values_->length_, "value")));
}

// Texts of up to 12 bytes are in the view, others in a buffer that it names.
std::string_view ArrowValues::ViewOf(int64_t at) const {
  constexpr int64_t kViewBytes = 16;
  constexpr int32_t kInlineBytes = 12;
  const char* const view = static_cast<const char*>(data_) + at * kViewBytes;
  int32_t words[4];
  std::memcpy(words, view, sizeof words);
  const int64_t size = words[0], buffer = words[2], begin = words[3];
  if (size >= 0 && size <= kInlineBytes) return {view + sizeof words[0], static_cast<size_t>(size)};
  if (size < 0 || buffer < 0 || buffer >= num_view_buffers_ || begin < 0 ||
      begin + size > At64(view_sizes_, buffer)) [[unlikely]]
    FailMalformed(fmt::format("value {} is [{}, {}) of buffer {} of {}", at - offset_, begin,
                              begin + size, buffer, num_view_buffers_));
  return {static_cast<const char*>(view_buffers_[buffer]) + begin, static_cast<size_t>(size)};
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

template <typename Use>
void ArrowValues::VisitPlain(int64_t at, size_t count, const Use& use) const {
  VisitNumber(kind_, data_, offset_ + at, [&](auto first) {
    using T = decltype(first);
    const char* stored = static_cast<const char*>(data_) + (offset_ + at) * int64_t{sizeof(T)};
    for (size_t i = 0; i < count; ++i, stored += sizeof(T)) {
      // The next rows of this column are read after those of the others.
      __builtin_prefetch(stored + count * sizeof(T));
      T value{};
      std::memcpy(&value, stored, sizeof value);
      use(i, value);
    }
  });
}

void ArrowValues::IntegerTexts(int64_t at, std::span<std::string_view> texts, char* scratch) const {
  VisitPlain(at, texts.size(), [&](size_t i, auto value) {
    if constexpr (std::is_integral_v<decltype(value)>)
      texts[i] = DecimalDigits(value, scratch + i * kMaxNumber);
  });
  if (!has_nulls()) return;
  for (size_t i = 0; i < texts.size(); ++i)
    if (IsNull(at + static_cast<int64_t>(i))) texts[i] = {};
}

void ArrowValues::Numbers(int64_t at, std::span<double> numbers) const {
  if (!is_encoded() && kind_ >= ArrowKind::kInt8 && kind_ <= ArrowKind::kDouble &&
      kind_ != ArrowKind::kFloat)
    return VisitPlain(at, numbers.size(),
                      [&](size_t i, auto value) { numbers[i] = static_cast<double>(value); });
  if (!is_encoded() && kind_ == ArrowKind::kFloat)
    return VisitPlain(at, numbers.size(), [&](size_t i, auto value) {
      numbers[i] = NumberOfFloat(static_cast<float>(value));
    });
  for (size_t i = 0; i < numbers.size(); ++i) {
    const int64_t place = at + static_cast<int64_t>(i);
    numbers[i] = IsNull(place) ? 0 : Number(place);
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
  return NumberOfFloat(number);
}

int64_t ArrowValues::Seconds(int64_t at) const {
  if (is_encoded()) return values_->Seconds(IndexOf(at));
  const int64_t value = VisitNumber(kind_, data_, offset_ + at,
                                    [](auto number) { return static_cast<int64_t>(number); });
  constexpr int64_t kSecondsPerDay = 86'400;
  if (kind_ == ArrowKind::kDate32) return value * kSecondsPerDay;
  return value / units_per_second_ - (value % units_per_second_ < 0 ? 1 : 0);
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
    int64_t parts = value % units_per_second_;
    if (parts < 0) parts += units_per_second_;
    if (parts != 0)
      end = fmt::format_to_n(end, static_cast<size_t>(scratch + kMaxNumber - end), ".{:0{}}", parts,
                             digits)
                .out;
  }
  return {scratch, static_cast<size_t>(end - scratch)};
}

}  // namespace renzan
