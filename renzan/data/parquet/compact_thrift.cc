#include "renzan/data/parquet/compact_thrift.h"

#include <algorithm>
#include <utility>

#include "renzan/base/error.h"

namespace renzan {
namespace {

// Types of fields.
constexpr int kI32 = 5, kI64 = 6, kBinary = 8, kList = 9, kStruct = 12;

}  // namespace

void CompactThriftWriter::Varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
  bytes_ += static_cast<char>(value);
}

void CompactThriftWriter::Signed(int64_t value) {
  Varint((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));  // zigzag
}

// Ids are written as the distance from the one before.
void CompactThriftWriter::Field(int id, int type) {
  const int distance = id - open_.back();
  CHECK(distance >= 1 && distance <= 15);
  bytes_ += static_cast<char>(distance << 4 | type);
  open_.back() = static_cast<char>(id);
}

void CompactThriftWriter::I32(int id, int32_t value) {
  Field(id, kI32);
  Signed(value);
}

void CompactThriftWriter::I64(int id, int64_t value) {
  Field(id, kI64);
  Signed(value);
}

void CompactThriftWriter::Text(int id, std::string_view value) {
  Field(id, kBinary);
  ElementText(value);
}

void CompactThriftWriter::BeginStruct(int id) {
  Field(id, kStruct);
  BeginElementStruct();
}

void CompactThriftWriter::BeginList(int id, Of of, size_t size) {
  Field(id, kList);
  constexpr size_t kLong = 15;
  bytes_ += static_cast<char>(std::min(size, kLong) << 4 | static_cast<size_t>(of));
  if (size >= kLong) Varint(size);
}

void CompactThriftWriter::ElementI32(int32_t value) { Signed(value); }

void CompactThriftWriter::ElementText(std::string_view value) {
  Varint(value.size());
  bytes_ += value;
}

void CompactThriftWriter::BeginElementStruct() { open_ += '\0'; }

void CompactThriftWriter::EndStruct() {
  open_.pop_back();
  bytes_ += '\0';
}

std::string CompactThriftWriter::Finish() {
  EndStruct();
  CHECK(open_.empty());
  return std::move(bytes_);
}

}  // namespace renzan
