#include "renzan/cluster/spec/output_frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "renzan/base/error.h"

namespace renzan::cluster::spec {
namespace {

TEST(OutputFrames, SayWhereTheirTextIsHoweverTheyAreCut) {
  const std::string stream = FrameHead({.attempt = 2, .offset = 70}, false, 0) +
                             FrameHead({.attempt = 2, .offset = 70}, true, 5) + "gone\n" +
                             FrameHead({.attempt = 2, .offset = 90}, false, 4) + "one\n" +
                             FrameHead({.attempt = 3, .offset = 0}, false, 4) + "two\n";
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
    EXPECT_EQ(text, "gone\none\ntwo\n") << piece;
    EXPECT_EQ(places.front(), (OutputPlace{.attempt = 2, .offset = 70})) << piece;
    EXPECT_THAT(places, testing::Contains(OutputPlace{.attempt = 2, .offset = 94})) << piece;
    EXPECT_EQ(places.back(), (OutputPlace{.attempt = 3, .offset = 4})) << piece;
  }
}

TEST(OutputFrames, ATextThatIsCutShortIsCountedAsFarAsItCame) {
  FrameReader reader;
  OutputPlace last;
  reader.Add(FrameHead({.attempt = 0, .offset = 10}, false, 100) + "abc",
             [&](std::string_view, const OutputPlace& place) { last = place; });
  EXPECT_EQ(last.offset, 13);
}

TEST(OutputFrames, OtherTextIsAnError) {
  const std::string head = FrameHead({.attempt = 0, .offset = 10}, false, 1);
  std::string letter = head, minus = head;
  letter[15] = 'x';
  minus[35] = '-';
  for (const std::string& text : {std::string(40, ' '), std::string(40, '='), letter, minus}) {
    FrameReader reader;
    EXPECT_THROW(reader.Add(text, [](std::string_view, const OutputPlace&) {}), Error) << text;
  }
}

}  // namespace
}  // namespace renzan::cluster::spec
