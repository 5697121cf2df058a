#include "renzan/data/text/input.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "renzan/base/philox.h"
#include "renzan/data/testing.h"

namespace renzan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::ExpectError;
using ::testing::HasSubstr;
using testing::WriteText;

std::vector<std::string> Lines(std::vector<std::string> paths) {
  LineReader reader(std::move(paths));
  std::vector<std::string> lines;
  for (std::string_view line; reader.Next(&line);)
    lines.push_back(fmt::format("{}:{}", reader.line_number(), line));
  return lines;
}

// Does not compress well, so that it can be truncated at many places.
std::string LongText() {
  std::string text;
  for (uint64_t i = 0; i < 200000; ++i) text += fmt::format("{:08x}\n", Philox::Draw(1, i)[0]);
  return text;
}

TEST(LineReader, LineEndsOfEveryKind) {
  TemporaryDirectory dir;
  WriteText(dir / "a", "\xef\xbb\xbfone\r\ntwo\n\nlast");
  WriteText(dir / "empty", "");
  WriteText(dir / "b", "next\n");
  EXPECT_THAT(Lines({dir / "a", dir / "empty", dir / "b"}),
              ElementsAre("1:one", "2:two", "3:", "4:last", "1:next"));
}

TEST(LineReader, CompressedIsTheSameText) {
  TemporaryDirectory dir;
  const std::string text = LongText();
  for (const char* name : {"t.txt", "t.gz", "t.zst"}) {
    WriteText(dir / name, text);
    LineReader reader({dir / name});
    std::string again;
    for (std::string_view line; reader.Next(&line);) again += std::string(line) + "\n";
    EXPECT_EQ(again, text) << name;
    EXPECT_EQ(reader.text_bytes(), text.size());
    EXPECT_EQ(reader.raw_bytes(), ReadFile(dir / name).size());
    EXPECT_EQ(reader.total_raw_bytes(), ReadFile(dir / name).size());
  }
  EXPECT_LT(ReadFile(dir / "t.gz").size(), text.size());
  EXPECT_LT(ReadFile(dir / "t.zst").size(), text.size());
}

TEST(LineReader, SeveralGzipMembersAndZstdFrames) {
  TemporaryDirectory dir;
  for (const std::string suffix : {".gz", ".zst"}) {
    WriteText(dir / ("a" + suffix), "one\ntw");
    WriteText(dir / ("b" + suffix), "o\nthree\n");
    WriteFileAtomically(dir / ("c" + suffix),
                        ReadFile(dir / ("a" + suffix)) + ReadFile(dir / ("b" + suffix)));
    EXPECT_THAT(Lines({dir / ("c" + suffix)}), ElementsAre("1:one", "2:two", "3:three"));
  }
}

TEST(LineReader, TruncatedFilesAreNamed) {
  TemporaryDirectory dir;
  const std::string text = LongText();
  for (const std::string name : {"t.gz", "t.zst"}) {
    WriteText(dir / name, text);
    const std::string whole = ReadFile(dir / name);
    // After the magic bytes, in the middle, and just before the end.
    for (size_t bytes : {size_t{6}, whole.size() / 2, whole.size() - 1}) {
      WriteFileAtomically(dir / name, whole.substr(0, bytes));
      ExpectError(ErrorCode::kData, AllOf(HasSubstr(dir / name), HasSubstr("truncated")),
                  [&] { Lines({dir / name}); });
    }
    WriteFileAtomically(dir / name, "");
    ExpectError(ErrorCode::kData, AllOf(HasSubstr(dir / name), HasSubstr("empty")),
                [&] { Lines({dir / name}); });
  }
}

TEST(LineReader, CorruptFilesAreNamed) {
  TemporaryDirectory dir;
  for (const std::string name : {"t.gz", "t.zst"}) {
    WriteText(dir / name, LongText());
    std::string bytes = ReadFile(dir / name);
    for (size_t i = bytes.size() / 2; i < bytes.size() / 2 + 300; ++i) bytes[i] ^= 0x55;
    WriteFileAtomically(dir / name, bytes);
    EXPECT_THROW(Lines({dir / name}), Error) << name;
  }
  WriteText(dir / "plain", "text\n");
  WriteFileAtomically(dir / "plain.gz", "text\n");
  ExpectError(ErrorCode::kData, HasSubstr("not a .gz file"), [&] { Lines({dir / "plain.gz"}); });
}

TEST(LineReader, BadPaths) {
  TemporaryDirectory dir;
  WriteText(dir / "a", "x\n");
  ExpectError(ErrorCode::kNoInput, HasSubstr("/missing"), [&] {
    LineReader reader({dir / "a", dir / "missing"});
  });
  ExpectError(ErrorCode::kNoInput, HasSubstr("is a directory"),
              [&] { LineReader reader({dir.path()}); });
  ExpectError(ErrorCode::kUsage, HasSubstr("only once"), [&] { LineReader reader({"-", "-"}); });
}

TEST(LineReader, EndlessLineIsAnError) {
  TemporaryDirectory dir;
  WriteText(dir / "a.zst", "first\n" + std::string(20 << 20, 'x'));
  ExpectError(ErrorCode::kData, HasSubstr("a.zst:2: the line is longer"),
              [&] { Lines({dir / "a.zst"}); });
}

TEST(LineReader, StandardInputOfAnyKind) {
  TemporaryDirectory dir;
  for (const char* name : {"t.txt", "t.gz", "t.zst"}) {
    WriteText(dir / name, "one\ntwo\n");
    const int saved = ::dup(STDIN_FILENO);
    const int fd = ::open((dir / name).c_str(), O_RDONLY);
    ::dup2(fd, STDIN_FILENO);
    EXPECT_THAT(Lines({"-"}), ElementsAre("1:one", "2:two")) << name;
    ::dup2(saved, STDIN_FILENO);
    ::close(fd);
    ::close(saved);
  }
}

TEST(LineReader, StopsOnRequest) {
  TemporaryDirectory dir;
  WriteText(dir / "a", "x\n");
  ExpectError(ErrorCode::kTempFail, HasSubstr("stopped on request"), [&] {
    LineReader reader({dir / "a"}, [] { return true; });
    std::string_view line;
    reader.Next(&line);
  });
}

TEST(LineReader, NoticesAStopRequestWhileItWaitsForInput) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  int polls = 0;
  const std::string path = fmt::format("/dev/fd/{}", ends[0]);
  ExpectError(ErrorCode::kTempFail, HasSubstr("stopped on request"), [&] {
    LineReader reader({path}, [&] { return ++polls > 2; });
    std::string_view line;
    reader.Next(&line);
  });
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(LineReader, OtherFormatsAreNamed) {
  using std::string_literals::operator""s;
  const struct {
    std::string start, message;
  } kCases[] = {
      {"PAR1\x15\x04\x15\x60"s,
       ": this is a Parquet file, not plain, gzip or zstd text: import it"},
      {"PK\x03\x04\x14\0\0\0"s, "unzip -p '"},
      {"BZh91AY&SY\x8d\xcd\x1f"s,
       "is compressed with bzip2, not plain, gzip or zstd text: unpack it"},
      {"\xfd\x37zXZ\0\0\x04"s, "unpack it (xz -dk '"},
      {"\xfd\x37zXZ\0\0\x04"s, "xzcat '"},
      {"\xff\xfey\0,\0a\0\n\0"s, "iconv -f UTF-16 -t UTF-8 '"},
      {"\xfe\xff\0y\0,\0a"s, "is UTF-16 text"},
      {"\xff\xfe\0\0y\0\0\0"s, "is UTF-32 text"},
      {"y\0,\0a\0\n\0"s, "is UTF-16LE text"},
      {"\0y\0,\0a\0\n"s, "is UTF-16BE text"},
      {"ARROW1\0\0"s, "read_feather('"},
      {"\x93NUMPY\x01\0"s, "is a NumPy array"},
  };
  for (const auto& test : kCases) {
    // Compressed too, and as a later file.
    for (const char* name : {"in", "in.gz"}) {
      TemporaryDirectory dir;
      const std::string path = dir / name;
      WriteText(path, test.start + std::string(100, 'x'));
      WriteText(dir / "first", "y,a\n");
      LineReader lines({dir / "first", path});
      std::string_view line;
      EXPECT_TRUE(lines.Next(&line));
      ExpectError(ErrorCode::kData, HasSubstr(test.message), [&] { lines.Next(&line); });
    }
  }
  // Texts that begin alike.
  for (const std::string& text : {"PAR1,x\n"s, "PAR1\n"s, "PK,y\n"s, "BZh9,x,y,z,1AY\n"s,
                                  "Object\n"s, "a"s, "\xff\n"s, ""s}) {
    TemporaryDirectory dir;
    WriteText(dir / "text", text);
    LineReader lines({dir / "text"});
    std::string_view line;
    EXPECT_EQ(lines.Next(&line), !text.empty());
  }
}

}  // namespace
}  // namespace renzan
