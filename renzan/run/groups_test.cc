#include "renzan/run/groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/comm/testing.h"
#include "renzan/data/import.h"

namespace renzan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char kSchemaOfGroups[] =
    "columns:\n"
    "  session: {role: key}\n"
    "  y: {role: label, key: true}\n"
    "  user: {role: categorical}\n"
    "  item: {role: categorical, key: true}\n"
    "  tags: {role: multi_hot}\n";

// A dataset of two shards; `sessions` are its keys.
struct GroupsData {
  TemporaryDirectory dir;
  std::string path = dir / "data";

  explicit GroupsData(const std::string& sessions = "abaa") {
    WriteFileAtomically(dir / "schema.yaml", kSchemaOfGroups);
    std::string text = "session,y,user,item,tags\n";
    for (size_t row = 0; row < 4; ++row)
      text += fmt::format("{},{},u{},i{},t\n", sessions[row], row % 2, row / 2, row);
    WriteFileAtomically(dir / "in.csv", text);
    ImportOptions options;
    options.inputs = {dir / "in.csv"};
    options.format = "csv";
    options.schema = dir / "schema.yaml";
    options.output = path;
    options.vocabulary = {"threshold:1"};
    options.shard_rows = 3;
    ImportDataset(options);
  }
};

OpenedSplits SplitsOf(const Dataset& dataset) {
  OpenedSplits splits;
  splits.train = {&dataset, {0, 1}};
  splits.eval = {&dataset, {1, 4}};
  return splits;
}

TrainConfig GroupedBy(const std::string& name) {
  TrainConfig config;
  config.training.group_by = name;
  return config;
}

const std::vector<EvaluatedOutput> kOneOutput = {{.label = "y"}};

TEST(GroupsOf, AreTheTextsOfAKeyOrTheIdsOfAFeature) {
  const GroupsData data;
  const Dataset dataset(data.path);
  RunRanksAsThreads(1, [&](Communicator& comm) {
    const auto by = [&](const std::string& name) {
      return GroupsOf(GroupedBy(name), SplitsOf(dataset), kOneOutput, comm);
    };
    EXPECT_FALSE(by(""));
    const auto sessions = by("session"), users = by("user"), items = by("item");
    EXPECT_THAT(sessions->Of(1, 3, {}), ElementsAre(1, 2, 2));
    EXPECT_FALSE(sessions->unseen());
    EXPECT_EQ(users->key(), nullptr);
    EXPECT_EQ(users->meaning(), "user");
    EXPECT_EQ(users->unseen(), 1);
    Batch batch;
    dataset.Read(std::vector<int64_t>{1, 2, 3}, &batch);
    EXPECT_THAT(users->Of(1, 3, batch), ElementsAre(2, 3, 3));
    // A feature that is a key is grouped by its texts.
    ASSERT_NE(items->key(), nullptr);
    EXPECT_THAT(items->Of(1, 2, batch), ElementsAre(1, 2));
    EXPECT_THAT(items->meaning(), HasSubstr("the key item "));
  });
}

std::string ErrorOf(const std::string& name, const Dataset& dataset) {
  std::string message;
  RunRanksAsThreads(1, [&](Communicator& comm) {
    try {
      GroupsOf(GroupedBy(name), SplitsOf(dataset), kOneOutput, comm);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);
      message = error.what();
    }
  });
  return message;
}

TEST(GroupsOf, RefusesOtherColumns) {
  const GroupsData data;
  const Dataset dataset(data.path);
  EXPECT_THAT(ErrorOf("sesion", dataset),
              HasSubstr("has no such column (did you mean 'session'?); choose a one-hot feature: "
                        "user, or a key: session, y, item"));
  EXPECT_THAT(ErrorOf("tags", dataset), HasSubstr("a row may have several ids of this feature"));
}

// Each host may have its own copy, and keys are no part of the fingerprint.
TEST(GroupsOf, WorkersMustHaveTheSameTexts) {
  const GroupsData mine("abaa"), other("abab");
  const Dataset a(mine.path), b(other.path);
  ASSERT_EQ(a.fingerprint(), b.fingerprint());
  std::vector<std::string> errors(2);
  RunRanksAsThreads(2, [&](Communicator& comm) {
    const Dataset& dataset = comm.rank() == 0 ? a : b;
    EXPECT_TRUE(GroupsOf(GroupedBy("item"), SplitsOf(dataset), kOneOutput, comm));
    try {
      GroupsOf(GroupedBy("session"), SplitsOf(dataset), kOneOutput, comm);
    } catch (const Error& error) {
      errors[static_cast<size_t>(comm.rank())] = error.what();
    }
  });
  for (const std::string& error : errors)
    EXPECT_THAT(error, HasSubstr("worker 1 has a different key 'session' in "));
}

TEST(UnseenGroupAdvice, IsGivenIfMostRowsAreOfUnseenValues) {
  const GroupsData data;
  const Dataset dataset(data.path);
  EXPECT_EQ(UnseenGroupAdvice("user", dataset, 2, 4), "");
  EXPECT_THAT(UnseenGroupAdvice("user", dataset, 3, 4),
              HasSubstr("75 % of 4 rows that are grouped by 'user' have values that its"));
  EXPECT_EQ(UnseenGroupAdvice("user", dataset, 0, 0), "");
}

}  // namespace
}  // namespace renzan
