#include "renzan/observe/event_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan {
namespace {

// A reader that shares no code with the writer: it has a bit-by-bit CRC and parses protobuf by
// hand.

uint32_t BitwiseMaskedCrc(std::string_view bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int i = 0; i < 8; ++i) crc = crc & 1 ? (crc >> 1) ^ 0x82F63B78 : crc >> 1;
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

template <typename T>
T Take(std::string_view& bytes) {
  T value{};
  EXPECT_GE(bytes.size(), sizeof(T));
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes.remove_prefix(sizeof(T));
  return value;
}

uint64_t TakeVarint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = Take<uint8_t>(bytes);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

// Maps field numbers to raw contents, in order: eight or four bytes, or a decoded varint.
std::multimap<int, std::string> Fields(std::string_view message) {
  std::multimap<int, std::string> fields;
  while (!message.empty()) {
    const uint64_t key = TakeVarint(message);
    const uint64_t varint = (key & 7) == 0 || (key & 7) == 2 ? TakeVarint(message) : 0;
    std::string content(reinterpret_cast<const char*>(&varint), sizeof(varint));
    if ((key & 7) != 0) {
      const size_t size = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : varint;
      content = message.substr(0, size);
      message.remove_prefix(size);
    }
    fields.emplace(static_cast<int>(key >> 3), content);
  }
  return fields;
}

template <typename T>
T As(const std::string& bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

std::vector<std::multimap<int, std::string>> ReadEvents(const std::string& path) {
  std::vector<std::multimap<int, std::string>> events;
  const std::string content = ReadFile(path);
  std::string_view rest = content;
  while (!rest.empty()) {
    const std::string_view length_bytes = rest.substr(0, 8);
    const auto length = Take<uint64_t>(rest);
    EXPECT_EQ(Take<uint32_t>(rest), BitwiseMaskedCrc(length_bytes));
    const std::string_view data = rest.substr(0, length);
    rest.remove_prefix(length);
    EXPECT_EQ(Take<uint32_t>(rest), BitwiseMaskedCrc(data));
    events.push_back(Fields(data));
  }
  return events;
}

TEST(EventFile, Crc32cKnownAnswers) {
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AA);  // RFC 3720, B.4
}

TEST(EventFile, AnIndependentReaderReadsTheScalars) {
  TemporaryDirectory dir;
  EventFile file(dir.path(), 1790000000.75, "node7");
  EXPECT_EQ(file.path(), dir / "events.out.tfevents.1790000000.node7");
  file.Add({100, 1790000001.5, {{"train/loss", 0.5}, {"train/auc", 0.75}, {"zero", 0}}});
  file.Add({int64_t{1} << 40, 1790000002.0, {{"train/loss", 0.25}}});

  // Read while the file is still open for writing: nothing is buffered.
  const auto events = ReadEvents(file.path());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].find(3)->second, "brain.Event:2");
  EXPECT_EQ(As<double>(events[0].find(1)->second), 1790000000.75);
  EXPECT_EQ(As<double>(events[1].find(1)->second), 1790000001.5);
  EXPECT_EQ(As<int64_t>(events[1].find(2)->second), 100);
  EXPECT_EQ(As<int64_t>(events[2].find(2)->second), int64_t{1} << 40);
  std::map<std::string, float> scalars;
  const auto summary = Fields(events[1].find(5)->second);
  for (const auto& [number, value] : summary) {
    EXPECT_EQ(number, 1);
    const auto fields = Fields(value);
    ASSERT_EQ(fields.count(2), 1u) << "TensorBoard drops a value without a number";
    scalars[fields.find(1)->second] = As<float>(fields.find(2)->second);
  }
  EXPECT_EQ(scalars, (std::map<std::string, float>{
                         {"train/loss", 0.5f}, {"train/auc", 0.75f}, {"zero", 0.0f}}));
}

TEST(EventFile, AResumedRunMarksItsFirstStep) {
  TemporaryDirectory dir;
  const EventFile file(dir.path(), 5, "h", 300);
  const auto events = ReadEvents(file.path());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(As<int64_t>(events[1].find(2)->second), 300);
  const auto session = Fields(events[1].find(7)->second);
  EXPECT_EQ(As<int64_t>(session.find(1)->second), 1);
}

TEST(EventFile, AMissingDirectoryIsNamed) {
  try {
    EventFile("/no/such/dir", 1, "h");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCantCreate);
    EXPECT_NE(std::string(error.what()).find("/no/such/dir/events"), std::string::npos);
  }
}

}  // namespace
}  // namespace renzan
