#include "renzan/cluster/spec/output_frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <vector>

#include "renzan/base/error.h"

namespace renzan::cluster::spec {
namespace {

const FrameReader::Take kIgnored = [](std::string_view, const OutputPlace&) {};

std::optional<ErrorCode> CodeOf(const std::function<void()>& fails) {
  try {
    fails();
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

TEST(OutputFrames, SayWhereTheirTextIsHoweverTheyAreCut) {
  const std::string stream =
      FrameHead({.attempt = 2, .offset = 70}, FrameKind::kOutput, 0) +
      FrameHead({.attempt = 2, .offset = 70}, FrameKind::kRemark, 5) + "gone\n" +
      FrameHead({.attempt = 2, .offset = 90}, FrameKind::kOutput, 4) + "one\n" +
      FrameHead({.attempt = 3, .offset = 0}, FrameKind::kOutput, 4) + "two\n";
  for (size_t piece = 1; piece <= stream.size(); ++piece) {
    FrameReader reader;
    std::string text;
    std::vector<OutputPlace> places;
    for (size_t at = 0; at < stream.size(); at += piece)
      reader.Add(std::string_view(stream).substr(at, piece),
                 [&](std::string_view more, const OutputPlace& place) {
                   text += more;
                   places.push_back(place);
                 });
    EXPECT_FALSE(reader.is_complete()) << piece;
    EXPECT_NO_THROW(reader.End()) << piece;
    EXPECT_EQ(text, "gone\none\ntwo\n") << piece;
    EXPECT_EQ(places.front(), (OutputPlace{.attempt = 2, .offset = 70})) << piece;
    EXPECT_THAT(places, testing::Contains(OutputPlace{.attempt = 2, .offset = 94})) << piece;
    EXPECT_EQ(places.back(), (OutputPlace{.attempt = 3, .offset = 4})) << piece;
  }
}

TEST(OutputFrames, ATextThatIsCutShortIsCountedAsFarAsItCame) {
  FrameReader reader;
  OutputPlace last;
  reader.Add(FrameHead({.attempt = 0, .offset = 10}, FrameKind::kOutput, 100) + "abc",
             [&](std::string_view, const OutputPlace& place) { last = place; });
  EXPECT_EQ(last.offset, 13);
}

TEST(OutputFrames, OtherTextIsAnError) {
  const std::string head = FrameHead({.attempt = 0, .offset = 10}, FrameKind::kOutput, 1);
  std::string letter = head, minus = head;
  letter[15] = 'x';
  minus[35] = '-';
  const std::string complete = FrameHead({.attempt = 0, .offset = 10}, FrameKind::kComplete, 0);
  for (const std::string& text :
       {std::string("hi\n"), std::string(40, '='), letter, minus, complete + head}) {
    FrameReader reader;
    EXPECT_EQ(CodeOf([&] { reader.Add(text, kIgnored); }), ErrorCode::kConfig) << text;
  }
}

TEST(OutputFrames, AStreamThatEndsTooEarlyIsNoStream) {
  const OutputPlace place{.attempt = 0, .offset = 10};
  const auto code_after = [](const std::string& stream) {
    FrameReader reader;
    reader.Add(stream, kIgnored);
    return CodeOf([&] { reader.End(); });
  };
  // Of a daemon that knows no frames.
  EXPECT_EQ(code_after(""), ErrorCode::kConfig);
  EXPECT_EQ(code_after("== 1 ==\n"), ErrorCode::kConfig);
  // Of one that does.
  const std::string begin = FrameHead(place, FrameKind::kOutput, 0);
  EXPECT_EQ(code_after(begin), std::nullopt);
  EXPECT_EQ(code_after(begin + begin.substr(0, 39)), ErrorCode::kUnavailable);
  EXPECT_EQ(code_after(begin + FrameHead(place, FrameKind::kOutput, 4) + "one"),
            ErrorCode::kUnavailable);
}

TEST(OutputFrames, TheLastFrameSaysThatTheOutputIsComplete) {
  const std::string complete = FrameHead({.attempt = 0, .offset = 10}, FrameKind::kComplete, 0);
  FrameReader reader;
  reader.Add(complete.substr(0, 39), kIgnored);
  EXPECT_FALSE(reader.is_complete());
  reader.Add("\n", kIgnored);
  EXPECT_TRUE(reader.is_complete());
  EXPECT_NO_THROW(reader.End());
}

}  // namespace
}  // namespace renzan::cluster::spec
