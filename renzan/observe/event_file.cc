#include "renzan/observe/event_file.h"

#include <fmt/format.h>

#include <array>
#include <bit>

namespace renzan {
namespace {

static_assert(std::endian::native == std::endian::little, "frames hold little-endian numbers");

constexpr std::array<uint32_t, 256> MakeCrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78 : 0);
    table[byte] = crc;
  }
  return table;
}

template <typename Number>
std::string_view BytesOf(const Number& number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

// TFRecord stores checksums rotated and offset, so that a checksum over data with embedded
// checksums stays meaningful.
uint32_t MaskedCrc(std::string_view bytes) { return std::rotr(Crc32c(bytes), 15) + 0xA282EAD8; }

// A message in Protocol Buffers' wire format (https://protobuf.dev/programming-guides/encoding).
// Four small messages do not need the library, which cannot be loaded beside another copy of
// itself, such as PyTorch's.
class Message {
 public:
  void PutDouble(int field, double value) { PutFixed(field, 1, value); }
  void PutFloat(int field, float value) { PutFixed(field, 5, value); }
  void PutInt(int field, int64_t value) {
    PutKey(field, 0);
    PutVarint(static_cast<uint64_t>(value));
  }
  void PutBytes(int field, std::string_view value) {
    PutKey(field, 2);
    PutVarint(value.size());
    bytes_ += value;
  }
  void PutMessage(int field, const Message& value) { PutBytes(field, value.bytes_); }

  const std::string& bytes() const { return bytes_; }

 private:
  void PutKey(int field, uint64_t wire_type) {
    PutVarint(static_cast<uint64_t>(field) << 3 | wire_type);
  }
  void PutVarint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  template <typename Number>
  void PutFixed(int field, uint64_t wire_type, Number value) {
    PutKey(field, wire_type);
    bytes_ += BytesOf(value);
  }

  std::string bytes_;
};

// The part of TensorBoard's format that is written here. The field numbers are from
// tensorflow/core/util/event.proto and tensorflow/core/framework/summary.proto.
namespace event {
constexpr int kWallTime = 1;  // double, seconds since 1970
constexpr int kStep = 2;      // int64
// Exactly one of these three.
constexpr int kFileVersion = 3;  // string
constexpr int kSummary = 5;      // Summary
constexpr int kSessionLog = 7;   // SessionLog
}  // namespace event
namespace summary {
constexpr int kValue = 1;  // repeated: Value
namespace value {
constexpr int kTag = 1;          // string
constexpr int kSimpleValue = 2;  // float
}  // namespace value
}  // namespace summary
namespace session_log {
constexpr int kStatus = 1;  // enum
constexpr int kStart = 1;   // of that enum
}  // namespace session_log

std::string Frame(const Message& message) {
  const std::string& data = message.bytes();
  const uint64_t length = data.size();
  const uint32_t length_crc = MaskedCrc(BytesOf(length));
  const uint32_t data_crc = MaskedCrc(data);
  std::string frame;
  for (const std::string_view part :
       {BytesOf(length), BytesOf(length_crc), std::string_view(data), BytesOf(data_crc)})
    frame += part;
  return frame;
}

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = MakeCrcTable();
  uint32_t crc = ~uint32_t{0};
  for (const char c : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(c)) & 0xFF];
  return ~crc;
}

EventFile::EventFile(const std::string& directory, double unix_seconds, const std::string& host,
                     int64_t next_step)
    : file_(fmt::format("{}/events.out.tfevents.{:010}.{}", directory,
                        static_cast<int64_t>(unix_seconds), host)) {
  Message version;
  version.PutDouble(event::kWallTime, unix_seconds);
  version.PutBytes(event::kFileVersion, "brain.Event:2");
  file_.Append(Frame(version));
  if (next_step == 0) return;
  Message start, resumed;
  start.PutInt(session_log::kStatus, session_log::kStart);
  resumed.PutDouble(event::kWallTime, unix_seconds);
  resumed.PutInt(event::kStep, next_step);
  resumed.PutMessage(event::kSessionLog, start);
  file_.Append(Frame(resumed));
}

void EventFile::Add(const ScalarRecord& record) {
  Message scalars;
  for (const Scalar& scalar : record.scalars) {
    Message value;
    value.PutBytes(summary::value::kTag, scalar.tag);
    value.PutFloat(summary::value::kSimpleValue, static_cast<float>(scalar.value));
    scalars.PutMessage(summary::kValue, value);
  }
  Message logged;
  logged.PutDouble(event::kWallTime, record.unix_seconds);
  logged.PutInt(event::kStep, record.step);
  logged.PutMessage(event::kSummary, scalars);
  file_.Append(Frame(logged));
}

}  // namespace renzan
