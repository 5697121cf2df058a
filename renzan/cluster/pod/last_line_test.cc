#include "renzan/cluster/pod/last_line.h"

#include <gtest/gtest.h>

namespace renzan::cluster::pod {
namespace {

// The same in one piece and byte by byte.
std::string LastOf(std::string_view text) {
  LastLine whole, bytes;
  whole.Add(text);
  for (const char c : text) bytes.Add({&c, 1});
  EXPECT_EQ(whole.text(), bytes.text());
  return whole.text();
}

TEST(LastLine, IsTheLastThatIsNotBlank) {
  EXPECT_EQ(LastOf(""), "");
  EXPECT_EQ(LastOf("\n \n"), "");
  EXPECT_EQ(LastOf("one\ntwo\n"), "two");
  EXPECT_EQ(LastOf("one\ntwo\r\n\n \t\n"), "two");
  EXPECT_EQ(LastOf("one\nunfinished"), "unfinished");
  EXPECT_EQ(LastOf("one\n  "), "one");
  EXPECT_EQ(LastOf("\r 10 %\r 20 %"), " 20 %");
}

TEST(LastLine, KeepsTheBeginningOfALongOne) {
  const std::string x(10'000, 'x');
  EXPECT_EQ(LastOf("one\n" + x), std::string(4096, 'x'));
  EXPECT_EQ(LastOf(x + "\ntwo\n"), "two");
}

}  // namespace
}  // namespace renzan::cluster::pod
