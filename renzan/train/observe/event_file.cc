#include "renzan/train/observe/event_file.h"

#include <fmt/format.h>

#include <array>
#include <bit>

#include "renzan/train/observe/event.pb.h"

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

std::string Frame(const events::Event& event) {
  const std::string data = event.SerializeAsString();
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
  events::Event version;
  version.set_wall_time(unix_seconds);
  version.set_file_version("brain.Event:2");
  file_.Append(Frame(version));
  if (next_step == 0) return;
  events::Event resumed;
  resumed.set_wall_time(unix_seconds);
  resumed.set_step(next_step);
  resumed.mutable_session_log()->set_status(events::SessionLog::START);
  file_.Append(Frame(resumed));
}

void EventFile::Add(const ScalarRecord& record) {
  events::Event event;
  event.set_wall_time(record.unix_seconds);
  event.set_step(record.step);
  for (const Scalar& scalar : record.scalars) {
    events::Summary::Value* value = event.mutable_summary()->add_value();
    value->set_tag(scalar.tag);
    value->set_simple_value(static_cast<float>(scalar.value));
  }
  file_.Append(Frame(event));
}

}  // namespace renzan
