#include "renzan/cluster/spec/amounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/error.h"
#include "renzan/cluster/spec/names.h"

namespace renzan::cluster::spec {
namespace {

TEST(Amounts, MebibytesAreRoundedUp) {
  EXPECT_EQ(ParseMebibytes("512MiB"), 512);
  EXPECT_EQ(ParseMebibytes("32GiB"), 32 << 10);
  EXPECT_EQ(ParseMebibytes("1.5TiB"), 3 << 19);
  EXPECT_EQ(ParseMebibytes("64PiB"), int64_t{1} << 36);
  EXPECT_EQ(ParseMebibytes("1025KiB"), 2);
  EXPECT_EQ(ParseMebibytes("0"), 0);
  EXPECT_EQ(ParseMebibytes("1"), 1);
  EXPECT_EQ(ParseMebibytes("1048577"), 2);
}

TEST(Amounts, MebibytesAsText) {
  EXPECT_EQ(MebibytesText(0), "0");
  EXPECT_EQ(MebibytesText(512), "512MiB");
  EXPECT_EQ(MebibytesText(1024), "1GiB");
  EXPECT_EQ(MebibytesText(1536), "1.5GiB");
  EXPECT_EQ(MebibytesText(int64_t{3} << 40), "3072PiB");
}

TEST(Amounts, RejectsOtherText) {
  for (const char* text :
       {"", "GiB", "-1GiB", "1.GiB", ".5GiB", "1 GiB", "1GB", "1Gi", "1gib", "1..5GiB", "65PiB",
        "1e3MiB", "inf", "99999999999999999999999GiB", "1,5GiB"})
    EXPECT_EQ(TryParseMebibytes(text), std::nullopt) << text;
  try {
    ParseMebibytes("1GB");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_THAT(error.what(), testing::HasSubstr("memory '1GB' must be an amount such as 512MiB"));
  }
}

TEST(Amounts, Replicas) {
  EXPECT_EQ(ParseReplicas("4"), (Range{4, 4}));
  EXPECT_EQ(ParseReplicas("2..8"), (Range{2, 8}));
  EXPECT_EQ(ParseReplicas("100000"), (Range{100000, 100000}));
  for (const char* text : {"", "0", "0..4", "3..2", "-1", "2...8", "2..", "..8", "2..8..9", "1.5",
                           "four", "100001", "4 ", "99999999999"})
    EXPECT_THROW(ParseReplicas(text), Error) << text;
  EXPECT_EQ(TryParseRange("0..20"), (Range{0, 20}));
}

TEST(Amounts, DurationsAreMillisecondsUpToTenYears) {
  EXPECT_EQ(TryParseMilliseconds("0"), 0);
  EXPECT_EQ(TryParseMilliseconds("90s"), 90'000);
  EXPECT_EQ(TryParseMilliseconds("1.5h"), 5'400'000);
  EXPECT_EQ(TryParseMilliseconds("0.1ms"), 1);
  EXPECT_EQ(TryParseMilliseconds("3650d"), 315'360'000'000);
  for (const char* text : {"", "30", "-1s", "3651d", "soon"})
    EXPECT_EQ(TryParseMilliseconds(text), std::nullopt) << text;
}

TEST(Names, AreSafeInFileNamesTablesAndUrls) {
  for (const char* name : {"a", "own", "A100-80GB", "3.x_y"}) EXPECT_TRUE(IsName(name)) << name;
  for (const char* name : {"", "-a", ".a", "_a", "a b", "a/b", "a\n", "\xc3\xbc", "a%", "a'"})
    EXPECT_FALSE(IsName(name)) << name;
  EXPECT_TRUE(IsName(std::string(63, 'a')));
  EXPECT_FALSE(IsName(std::string(64, 'a')));
  EXPECT_TRUE(IsUserName("_apt"));
  EXPECT_TRUE(IsUserName("ann@example.org"));
  EXPECT_FALSE(IsUserName("an n"));
  EXPECT_TRUE(IsLabelKey("topology.example.org/rack"));
  EXPECT_TRUE(IsVariableName("_A1"));
  EXPECT_FALSE(IsVariableName("1A"));
  EXPECT_FALSE(IsVariableName("A=B"));
  EXPECT_FALSE(IsVariableName(""));
  EXPECT_TRUE(IsOneLine("NVIDIA A100, \xc3\xbc"));
  EXPECT_FALSE(IsOneLine("a\nb"));
}

}  // namespace
}  // namespace renzan::cluster::spec
