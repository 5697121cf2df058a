#include "renzan/data/key_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "renzan/data/text/csv_testing.h"

namespace renzan {
namespace {

using testing::Csv;
using ::testing::ElementsAre;

const char kGroupedSchema[] =
    "columns:\n"
    "  session: {role: key}\n"
    "  y: {role: label}\n"
    "  user: {role: categorical, key: true}\n";

// Texts of any bytes, also empty ones, over several shards.
TEST(KeyGroups, AreNumberedByTheirFirstRow) {
  Csv csv(kGroupedSchema, {"session,y,user\nb,0,u\n,1,v\nb,1,u\n?\xff,0,v\nB,0,u\n,1,w\nb,0,v\n"});
  csv.options.shard_rows = 2;
  csv.Import();
  const Dataset dataset(csv.options.output);
  const KeyGroups all(dataset, "session", 0, 7);
  EXPECT_THAT(all.Of(0, 7), ElementsAre(0, 1, 0, 3, 4, 1, 0));
  EXPECT_THAT(all.Of(2, 3), ElementsAre(0, 3, 4));
  EXPECT_TRUE(all.Of(7, 0).empty());
  EXPECT_EQ(all.size(), 4);
  EXPECT_EQ(all.bytes(), 7 * 8);
  EXPECT_EQ(all.Text(1), "");
  EXPECT_EQ(all.Text(3), "?\xff");
  // Rows before the range are no groups.
  const KeyGroups some(dataset, "session", 2, 6);
  EXPECT_THAT(some.Of(2, 4), ElementsAre(2, 3, 4, 5));
  EXPECT_EQ(some.Text(2), "b");
  EXPECT_THAT(KeyGroups(dataset, "user", 0, 7).Of(0, 7), ElementsAre(0, 1, 0, 1, 0, 5, 1));
  EXPECT_TRUE(KeyGroups(dataset, "user", 3, 3).Of(3, 0).empty());
}

// So many that the table of texts grows several times.
TEST(KeyGroups, AreThoseOfAMap) {
  std::string text = "session,y,user\n";
  std::vector<std::string> sessions;
  for (int row = 0; row < 5000; ++row) {
    sessions.push_back(fmt::format("s{}", row * 7919 % (row % 2 == 0 ? 100 : 3001)));
    text += fmt::format("{},{},u\n", sessions.back(), row % 2);
  }
  Csv csv(kGroupedSchema, {text});
  csv.options.shard_rows = 700;
  csv.Import();
  const Dataset dataset(csv.options.output);
  const KeyGroups groups(dataset, "session", 100, 5000);
  std::map<std::string, int64_t> first;
  for (int64_t row = 100; row < 5000; ++row) {
    const int64_t expected = first.emplace(sessions[static_cast<size_t>(row)], row).first->second;
    ASSERT_EQ(groups.Of(row, 1)[0], expected) << row;
    ASSERT_EQ(groups.Text(expected), sessions[static_cast<size_t>(row)]);
  }
  EXPECT_EQ(groups.size(), std::ssize(first));
}

TEST(KeyGroups, FingerprintIsOfTheTextsOfOneKey) {
  const auto fingerprints = [](const std::string& rows) {
    Csv csv(kGroupedSchema, {"session,y,user\n" + rows});
    csv.options.shard_rows = 1;
    csv.Import();
    const Dataset dataset(csv.options.output);
    return std::pair(KeyFingerprint(dataset, "session"), KeyFingerprint(dataset, "user"));
  };
  const auto [session, user] = fingerprints("a,0,u\nb,1,v\n");
  EXPECT_EQ(fingerprints("a,1,u\nb,0,v\n"), std::pair(session, user));
  const auto [other_session, same_user] = fingerprints("a,0,u\nc,1,v\n");
  EXPECT_NE(other_session, session);
  EXPECT_EQ(same_user, user);
  EXPECT_NE(fingerprints("b,0,u\na,1,v\n").first, session);
}

}  // namespace
}  // namespace renzan
