#pragma once

// The values of one column of an Arrow table, in the types that imports take. Plain views, valid as
// long as the arrays.

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "renzan/base/decimal_digits.h"
#include "renzan/data/arrow/arrow_abi.h"

namespace renzan {

enum class ArrowKind {
  kOther,  // a type that no import takes
  kNull,
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kFloat,
  kDouble,
  kText,       // UTF-8 or bytes, offsets of 32 bits
  kLargeText,  // 64 bits
  kTextView,
  kDate32,  // days
  kDate64,  // milliseconds
  kTimestamp,
  kList,
  kLargeList,
  kFixedList,
};

struct ArrowType {
  ArrowKind kind = ArrowKind::kOther;
  std::string name;                           // for people: "int64", "list of string"
  int64_t units_per_second = 1;               // kDate64, kTimestamp
  std::string zone;                           // kTimestamp; empty: none
  int64_t list_size = 0;                      // kFixedList
  std::unique_ptr<ArrowType> item = nullptr;  // of a list
  // If the column holds indices: the type that they have, and `kind` is that of the values.
  ArrowKind index = ArrowKind::kOther;

  static ArrowType Of(const ArrowSchema& schema);

  bool is_encoded() const { return index != ArrowKind::kOther; }
  bool is_integer() const { return kind >= ArrowKind::kInt8 && kind <= ArrowKind::kUint64; }
  bool is_float() const { return kind == ArrowKind::kFloat || kind == ArrowKind::kDouble; }
  bool is_number() const { return kind == ArrowKind::kBool || is_integer() || is_float(); }
  bool is_text() const { return kind >= ArrowKind::kText && kind <= ArrowKind::kTextView; }
  bool is_time() const { return kind >= ArrowKind::kDate32 && kind <= ArrowKind::kTimestamp; }
  bool is_list() const { return kind >= ArrowKind::kList; }
};

// Calls `use` with the value of an integer or float type as it is stored.
template <typename Use>
[[gnu::always_inline]] inline auto VisitNumber(ArrowKind kind, const void* data, int64_t at,
                                               const Use& use) {
  const auto load = [&](auto value) {
    std::memcpy(&value, static_cast<const char*>(data) + at * int64_t{sizeof value}, sizeof value);
    return use(value);
  };
  switch (kind) {
    case ArrowKind::kInt8:
      return load(int8_t{});
    case ArrowKind::kInt16:
      return load(int16_t{});
    case ArrowKind::kUint8:
      return load(uint8_t{});
    case ArrowKind::kUint16:
      return load(uint16_t{});
    case ArrowKind::kUint32:
      return load(uint32_t{});
    case ArrowKind::kUint64:
      return load(uint64_t{});
    case ArrowKind::kInt32:
    case ArrowKind::kDate32:
      return load(int32_t{});
    case ArrowKind::kFloat:
      return load(float{});
    case ArrowKind::kDouble:
      return load(double{});
    default:
      return load(int64_t{});
  }
}

class ArrowValues {
 public:
  static constexpr size_t kMaxNumber = 32;  // bytes of the text of a number or a time

  // Throws kData if the array, which may be null, is not one of the type: what reads it later
  // trusts its pointers. `column` is for messages.
  void Bind(const ArrowType& type, const ArrowArray* array, const std::string& column);

  int64_t length() const { return length_; }
  // Row `at` of the array, without its offset.
  bool IsNull(int64_t at) const {
    if (all_null_ || (validity_ != nullptr && !Bit(validity_, offset_ + at))) return true;
    return is_encoded() && values_->IsNull(IndexOf(at));
  }

  // Of a value that is not null. Numbers and times are written to `scratch`, [kMaxNumber].
  std::string_view Text(int64_t at, char* scratch) const {
    if (kind_ == ArrowKind::kText && !is_encoded()) return TextOf<int32_t>(offset_ + at);
    return OtherText(at, scratch);
  }
  // Those of consecutive integers, empty where one is null; `scratch`: [texts, kMaxNumber].
  void IntegerTexts(int64_t at, std::span<std::string_view> texts, char* scratch) const;
  // The text of an integer.
  std::string_view IntegerText(int64_t at, char* scratch) const {
    return VisitNumber(kind_, data_, offset_ + at, [&](auto value) -> std::string_view {
      if constexpr (std::is_integral_v<decltype(value)>)
        return DecimalDigits(value, scratch);
      else
        return {};
    });
  }
  // Of a number; the nearest double, as text would be read.
  double Number(int64_t at) const;
  // Those of consecutive ones; where one is null, anything.
  void Numbers(int64_t at, std::span<double> numbers) const;
  bool has_nulls() const { return all_null_ || validity_ != nullptr || is_encoded(); }
  // Of a plain float32, as it is stored: the same as Number() once both are float32 again.
  float StoredFloat(int64_t at) const {
    float number = 0;
    std::memcpy(&number, static_cast<const char*>(data_) + (offset_ + at) * int64_t{sizeof number},
                sizeof number);
    return number;
  }
  // Of a date or time: seconds since 1970.
  int64_t Seconds(int64_t at) const;

  // The values [*begin, *end) of items() that a list owns.
  void ListRange(int64_t at, int64_t* begin, int64_t* end) const;
  const ArrowValues& items() const { return *values_; }

  // Of the bits of a validity buffer.
  static bool Bit(const void* bits, int64_t at) {
    return (static_cast<const uint8_t*>(bits)[at >> 3] >> (at & 7) & 1) != 0;
  }

 private:
  bool is_encoded() const { return index_ != ArrowKind::kOther; }
  [[noreturn]] void FailMalformed(const std::string& what) const;
  void BindBuffers(const ArrowArray& array);
  void BindViews(const ArrowArray& array);
  template <typename Offset>
  void BindOffsets();
  int64_t IndexOf(int64_t at) const;
  // Calls use(i, value) for plain numbers from `at` on.
  template <typename Use>
  void VisitPlain(int64_t at, size_t count, const Use& use) const;
  template <typename Offset>
  void OffsetsAt(int64_t at, int64_t* begin, int64_t* end) const;
  template <typename Offset>
  std::string_view TextOf(int64_t at) const {
    int64_t begin = 0, end = 0;
    OffsetsAt<Offset>(at, &begin, &end);
    return {static_cast<const char*>(bytes_) + begin, static_cast<size_t>(end - begin)};
  }
  std::string_view OtherText(int64_t at, char* scratch) const;
  std::string_view ViewOf(int64_t at) const;
  std::string_view TimeText(int64_t at, char* scratch) const;

  std::string column_;
  ArrowKind kind_ = ArrowKind::kOther, index_ = ArrowKind::kOther;
  int64_t length_ = 0, offset_ = 0;
  int64_t units_per_second_ = 1, list_size_ = 0;
  bool all_null_ = false;
  const void* validity_ = nullptr;  // null: no value is null
  const void* data_ = nullptr;      // numbers, offsets or views
  const void* bytes_ = nullptr;     // of texts
  int64_t first_ = 0, last_ = 0;    // the offsets of the first value and after the last one
  // Of kTextView: where long texts are, and the sizes of these buffers.
  const void* const* view_buffers_ = nullptr;
  const void* view_sizes_ = nullptr;
  int64_t num_view_buffers_ = 0;
  std::unique_ptr<ArrowValues> values_;  // a list's items, or the values that indices mean
};

}  // namespace renzan
