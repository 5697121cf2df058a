#include "renzan/base/xxhash.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "renzan/base/file/file.h"

namespace renzan {
namespace {

std::string HashOf(std::string_view text) {
  Xxh128 hash;
  hash.Update(text);
  return hash.HexDigest();
}

// What xxh128sum prints.
TEST(Xxh128, KnownAnswers) {
  EXPECT_EQ(Xxh128().HexDigest(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(HashOf("abc"), "06b05ab6733a618578af5f94892f3950");
}

TEST(Xxh128, SplitsDoNotMatter) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 7 + i / 256);
  const std::string whole = HashOf(text);
  for (const size_t piece : {1, 3, 64, 240, 241, 1024, 4999}) {
    Xxh128 hash;
    for (size_t at = 0; at < text.size(); at += piece) {
      hash.Update(std::string_view(text).substr(at, piece));
      hash.Update(nullptr, 0);
    }
    EXPECT_EQ(hash.HexDigest(), whole) << piece;
  }
  text.back() ^= 1;
  EXPECT_NE(HashOf(text), whole);
}

TEST(Xxh128, GoesOnAfterADigestAndAMove) {
  Xxh128 hash;
  hash.Update("a");
  EXPECT_EQ(hash.HexDigest(), HashOf("a"));
  Xxh128 moved = std::move(hash);
  moved.Update("bc");
  EXPECT_EQ(moved.HexDigest(), HashOf("abc"));
}

TEST(Xxh128, OfAFileLongerThanAPiece) {
  TemporaryDirectory dir;
  const std::string text(2500000, 'x');
  WriteFileAtomically(dir / "x", text);
  EXPECT_EQ(Xxh128OfFile(dir / "x"), HashOf(text));
}

// What `xxhsum -H3` prints.
TEST(Xxh3OfBlock, KnownAnswers) {
  EXPECT_EQ(Xxh3OfBlock("", 0), 0x2d06800538d394c2u);
  EXPECT_EQ(Xxh3OfBlock("abc", 3), 0x78af5f94892f3950u);
}

}  // namespace
}  // namespace renzan
