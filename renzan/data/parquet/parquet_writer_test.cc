#include "renzan/data/parquet/parquet_writer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "renzan/base/error.h"

namespace renzan {
namespace {

using Type = ParquetColumn::Type;

std::string Bytes(std::string_view text) { return std::string(text); }
#define BYTES(text) Bytes({text, sizeof(text) - 1})

uint32_t LittleEndian(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Every byte of a small file, as parquet.thrift has them. pyarrow reads it.
TEST(ParquetWriter, WritesWhatTheFormatSays) {
  TemporaryDirectory dir;
  ParquetWriter writer(dir / "a.parquet", {{"user", Type::kText}, {"score", Type::kFloat}});
  writer.Append(0, "\u00fc");
  writer.Append(1, 0.5f);
  writer.EndRow();
  writer.Append(0, "");
  writer.Append(1, -2.0f);
  writer.EndRow();
  writer.Close();

  const std::string texts = BYTES("\x02\0\0\0\xc3\xbc\0\0\0\0");
  const std::string floats = BYTES("\0\0\0\x3f\0\0\0\xc0");
  // type 0, sizes (zigzag), data_page_header {values 2, PLAIN, RLE, RLE}
  const auto page = [](char bytes) {
    return BYTES("\x15\0\x15") + bytes + '\x15' + bytes +
           BYTES("\x2c\x15\x04\x15\0\x15\x06\x15\x06\0\0");
  };
  const std::string body = "PAR1" + page(2 * 10) + texts + page(2 * 8) + floats;
  const std::string bytes = ReadFile(dir / "a.parquet");
  EXPECT_EQ(bytes.substr(0, body.size()), body);

  const std::string metadata =
      BYTES(
          "\x15\x02"                                        // version 1
          "\x19\x3c"                                        // schema: 3 structs
          "\x48\x06schema\x15\x04\0"                        // root, 2 children
          "\x15\x0c\x25\0\x18\x04user\x25\0\x4c\x1c\0\0\0"  // BYTE_ARRAY, required, UTF8, STRING
          "\x15\x08\x25\0\x18\x05score\0"                   // FLOAT, required
          "\x16\x04"                                        // 2 rows
          "\x19\x1c"                                        // 1 row group
          "\x19\x2c"                                        // 2 column chunks
          "\x26\x08\x1c\x15\x0c\x19\x15\0\x19\x18\x04user\x15\0\x16\x04\x16\x36\x16\x36\x26\x08\0\0"
          "\x26\x3e\x1c\x15\x08\x19\x15\0\x19\x18\x05score\x15\0\x16\x04\x16\x32\x16\x32\x26\x3e\0"
          "\0"
          "\x16\x68\x16\x04\0") +  // bytes and rows of the row group
      BYTES("\x28") +
      static_cast<char>(std::strlen("renzan version " RENZAN_VERSION)) +
      "renzan version " RENZAN_VERSION + '\0';
  const size_t end = bytes.size() - 8;
  EXPECT_EQ(bytes.substr(end + 4), "PAR1");
  EXPECT_EQ(LittleEndian(bytes, end), metadata.size());
  EXPECT_EQ(bytes.substr(body.size(), end - body.size()), metadata);
}

TEST(ParquetWriter, RowGroupsBoundItsMemory) {
  TemporaryDirectory dir;
  constexpr int64_t kRows = 1000;
  ParquetWriter writer(dir / "a.parquet", {{"id", Type::kInt64}}, 800);
  for (int64_t row = 0; row < kRows; ++row) {
    writer.Append(0, row - kRows / 2);
    writer.EndRow();
  }
  writer.Close();
  const std::string bytes = ReadFile(dir / "a.parquet");
  // Ten groups of 100 rows: their values lie between headers of pages of one length.
  constexpr size_t kHeader = 20, kGroup = 800;
  int64_t row = 0;
  for (size_t group = 0; group < 10; ++group)
    for (size_t at = 4 + group * (kHeader + kGroup) + kHeader, i = 0; i < 100; ++i, ++row) {
      int64_t value = 0;
      std::memcpy(&value, bytes.data() + at + 8 * i, sizeof value);
      ASSERT_EQ(value, row - kRows / 2);
    }
}

TEST(ParquetWriter, LeavesNothingUnlessClosed) {
  TemporaryDirectory dir;
  {
    ParquetWriter writer(dir / "a.parquet", {{"id", Type::kInt64}}, 8);
    writer.Append(0, int64_t{1});
    writer.EndRow();
  }
  EXPECT_FALSE(FileExists(dir / "a.parquet"));
}

}  // namespace
}  // namespace renzan
