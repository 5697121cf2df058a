#include "renzan/base/config/yaml_quotes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "renzan/base/config/config.h"
#include "renzan/base/error.h"

namespace renzan {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// The message of the error that reading throws, or "".
std::string MessageFor(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  std::map<std::string, std::string> values;
  try {
    ReadConfigText(yaml, "c.yaml", overrides,
                   [&](ConfigFields& fields) { fields.Field("values", &values); });
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string UnclosedAt(size_t line, size_t column) {
  return fmt::format("c.yaml:{}:{}: not valid YAML: the quote that opens here is never closed",
                     line, column);
}

// Values of "values:", each a line or more, with quotes wherever YAML has them.
const std::vector<std::string> kValues = {
    "plain",
    "it's plain, isn't it",
    "say \"plain\"",
    "5'11\" # a \"comment\" with 'quotes' isn't text",
    "\"double\"",
    "\"an escaped \\\" and a backslash \\\\\"",
    "\"an apostrophe: it's\" # isn't it",
    "'single'",
    "'it''s one: \"x\" # and no comment'",
    "''",
    "\"\"",
    "\"over\n    two lines: it's\"",
    "'over\n\n    three lines, \"quoted\"'",
    "|\n    a \"block isn't: quoted\n\n    'nor its end",
    ">-\n    \"folded",
    "|2\n      'indented",
    "!!str \"tagged\"",
    "&name 'anchored'",
    "word # isn't it",
};
const std::vector<std::string> kKeys = {"k{}", "\"k {}\"", "'it''s {}'", "it's{}", "k\"{}"};

// A document of a random number of such values, and where its lines for further ones would begin.
std::string RandomDocument(std::mt19937& random) {
  std::string yaml = random() % 2 == 0 ? "values:\n" : "# it's a \"comment\nvalues:\n";
  for (size_t i = 0, n = random() % 6; i < n; ++i)
    yaml += "  " + fmt::format(fmt::runtime(kKeys[random() % kKeys.size()]), i) + ": " +
            kValues[random() % kValues.size()] + "\n";
  return yaml;
}

size_t LinesOf(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

// Of every document that is a valid one, and of the same one with a quote left open at its end: the
// text after it may have anything but the same quote.
TEST(YamlQuotes, AQuoteThatIsNeverClosedIsTheError) {
  std::mt19937 random(7);
  const std::vector<std::string> rests = {
      "x", "x\n", "x\n  more: 1\nbatch: 3\n", "x # no end\n", "x}\n  a: {b]\n", "x\n- y\n\tz: |\n"};
  for (int i = 0; i < 2000; ++i) {
    const std::string yaml = RandomDocument(random);
    ASSERT_EQ(MessageFor(yaml), "") << yaml;
    const bool is_double = random() % 2 == 0;
    const std::string quote = is_double ? "\"" : "'";
    const std::string rest = rests[random() % rests.size()];
    switch (random() % 3) {
      case 0:
        EXPECT_EQ(MessageFor(yaml + "  last: " + quote + rest), UnclosedAt(LinesOf(yaml) + 1, 9))
            << yaml << rest;
        break;
      case 1:
        EXPECT_EQ(MessageFor(yaml + "  ? " + quote + rest), UnclosedAt(LinesOf(yaml) + 1, 5))
            << yaml << rest;
        break;
      case 2:
        EXPECT_EQ(MessageFor(yaml + "  last: {a: [b, " + quote + rest),
                  UnclosedAt(LinesOf(yaml) + 1, 17))
            << yaml << rest;
        break;
    }
  }
}

TEST(YamlQuotes, EscapesDoNotCloseIt) {
  EXPECT_EQ(MessageFor("values:\n  a: \"b\\\"\n"), UnclosedAt(2, 6));
  EXPECT_EQ(MessageFor("values:\n  a: 'b''\n"), UnclosedAt(2, 6));
  EXPECT_EQ(MessageFor("values:\n  a: 'b\\'\n"), "");
  EXPECT_EQ(MessageFor("values:\n  a: !!str \"b\n"), UnclosedAt(2, 12));
  EXPECT_EQ(MessageFor("\xef\xbb\xbfvalues: {a: \"b\"}\n"), "");
  EXPECT_EQ(MessageFor("\xef\xbb\xbfvalues:\n  a: \"b\n"), UnclosedAt(2, 6));
}

TEST(YamlQuotes, AnOverrideIsNamedAsAWhole) {
  for (const char* end : {"", "\n"})
    EXPECT_THAT(MessageFor("", {std::string("values.a=\"b") + end}),
                AllOf(StartsWith("--set values.a="),
                      HasSubstr(": not valid YAML: the quote that opens here is never closed")));
}

// The next quote closes it, with whatever follows in the way.
TEST(YamlQuotes, AQuoteThatIsClosedTooLateIsNamed) {
  const std::string error = MessageFor("values:\n  a: \"|\n  b: 1\n  c: \"x\"\n");
  EXPECT_THAT(error, StartsWith("c.yaml:4:"));
  EXPECT_THAT(error, HasSubstr("; the quote that opens in line 2, column 6, is closed only in this "
                               "line"));
  EXPECT_EQ(MessageFor("values: {a: \"x\ny\"\nb: {\n").find("the quote"), std::string::npos);
}

}  // namespace
}  // namespace renzan
