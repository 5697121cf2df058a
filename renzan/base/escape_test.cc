#include "renzan/base/escape.h"

#include <gtest/gtest.h>

namespace renzan {
namespace {

TEST(Escape, KeepsWhatCanBeShown) {
  EXPECT_EQ(Escape("plain 'text' \\ {}"), "plain 'text' \\ {}");
  EXPECT_EQ(Escape("\u00fc \u2264 \U0001f980"), "\u00fc \u2264 \U0001f980");
  EXPECT_EQ(Escape(""), "");
}

TEST(Escape, WritesOutEverythingElse) {
  EXPECT_EQ(Escape("a\tb\nc\rd"), "a\\tb\\nc\\x0dd");
  EXPECT_EQ(Escape("\x1b[31mred\x7f"), "\\x1b[31mred\\x7f");
  EXPECT_EQ(Escape(std::string_view("\0x", 2)), "\\x00x");
  EXPECT_EQ(Escape("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(Escape("\xc2\x9b"
                   "31m"),
            "\\xc2\\x9b31m");  // CSI as one character
  EXPECT_EQ(Escape("cut \xe2\x89"), "cut \\xe2\\x89");
  EXPECT_EQ(Escape("\xc0\xaf"), "\\xc0\\xaf");           // an overlong slash
  EXPECT_EQ(Escape("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half a surrogate pair
  EXPECT_EQ(Escape("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

TEST(Escape, AMessageKeepsItsLines) { EXPECT_EQ(EscapeMessage("a\n\tb\x1b"), "a\n\tb\\x1b"); }

TEST(ShortText, CutsBetweenCharacters) {
  EXPECT_EQ(ShortText("", 3), "");
  EXPECT_EQ(ShortText("sport", 5), "sport");
  EXPECT_EQ(ShortText("sports", 5), "sport...");
  EXPECT_EQ(ShortText("Per\u00fa", 5), "Per\u00fa");
  EXPECT_EQ(ShortText("Per\u00fa", 4), "Per...");
  EXPECT_EQ(ShortText("\u5317\u4eac\u5e02", 8), "\u5317\u4eac...");
  EXPECT_EQ(ShortText("\u5317\u4eac\u5e02", 6), "\u5317\u4eac...");
  for (size_t bytes = 1; bytes < 4; ++bytes)
    EXPECT_EQ(ShortText("\U0001f980", bytes), "...") << bytes;
}

TEST(ShortText, CutsAnywhereWhatIsNoUtf8) {
  EXPECT_EQ(ShortText("\xff\xfe\xfd", 2), "\xff\xfe...");
  EXPECT_EQ(ShortText("\x80\x80\x80\x80\x80\x80", 5), "\x80\x80\x80\x80\x80...");
  EXPECT_EQ(ShortText("a\xe2\x89", 2), "a\xe2...");  // cut before
}

}  // namespace
}  // namespace renzan
