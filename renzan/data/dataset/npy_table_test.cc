#include "renzan/data/dataset/npy_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "renzan/data/testing.h"

namespace renzan {
namespace {

using testing::ExpectError;
using ::testing::HasSubstr;
using FieldType = NpyField::Type;

// predict_keys_test.sh reads such a file with NumPy.
TEST(NpyTableWriter, PacksRowsOfFields) {
  const TemporaryDirectory dir;
  NpyTableWriter table(dir / "t.npy", {{"it's\\ü\n", FieldType::kText, 2},
                                       {"b", FieldType::kBytes, 3},
                                       {"row", FieldType::kInt64},
                                       {"score"}});
  const auto append = [&](std::string_view text, std::string_view bytes, int64_t row, float score) {
    table.Append(0, text);
    table.Append(1, bytes);
    table.Append(2, row);
    table.Append(3, score);
    table.EndRow();
  };
  append("aü", "\xff", 5, 0.5f);
  append("\xf0\x9f\x98\x80", "xyz", -1, 2);
  table.Close();
  const std::string file = ReadFile(dir / "t.npy");
  const size_t begin = file.size() - 2 * (8 + 3 + 8 + 4);
  EXPECT_EQ(begin % 64, 0u);
  EXPECT_EQ(file.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_EQ(static_cast<size_t>(static_cast<unsigned char>(file[8])) +
                256 * static_cast<unsigned char>(file[9]) + 10,
            begin);
  const std::string header = file.substr(10, begin - 10);
  EXPECT_EQ(header.back(), '\n');
  EXPECT_THAT(header, HasSubstr(R"({'descr': [('it\'s\\\u00fc\u000a', '<U2'), ('b', '|S3'), )"
                                R"(('row', '<i8'), ('score', '<f4')], 'fortran_order': False, )"
                                R"('shape': (2,), })"));
  const std::string rows = file.substr(begin);
  EXPECT_EQ(rows.substr(0, 23), std::string("a\0\0\0\xfc\0\0\0"
                                            "\xff\0\0"
                                            "\5\0\0\0\0\0\0\0"
                                            "\0\0\0\x3f",
                                            23));
  EXPECT_EQ(rows.substr(23, 11), std::string("\0\xf6\1\0\0\0\0\0xyz", 11));
}

TEST(NpyTableWriter, RefusesWhatNumPyDoesNotRead) {
  const TemporaryDirectory dir;
  const auto refused = [&](std::vector<NpyField> fields, const std::string& message) {
    ExpectError(ErrorCode::kUsage, HasSubstr(message),
                [&] { NpyTableWriter(dir / "no.npy", std::move(fields)); });
    EXPECT_FALSE(FileExists(dir / "no.npy"));
  };
  refused(std::vector<NpyField>(900, {"number"}), "the names of 900 columns do not fit");
  NpyTableWriter(dir / "yes.npy", std::vector<NpyField>(480, {"number"}));
  refused({{"text", FieldType::kText, int64_t{1} << 29}},
          "a row would have 2147483648 bytes, because each has the room of the longest text");
}

TEST(NpyTableWriter, CountsCharacters) {
  EXPECT_EQ(CountCharacters(""), 0);
  EXPECT_EQ(CountCharacters("aü€\xf0\x9f\x98\x80"), 4);
  EXPECT_EQ(CountCharacters("\xff\xfe"), 2);
}

}  // namespace
}  // namespace renzan
