#include "renzan/data/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/data/dataset/dataset_writer.h"
#include "renzan/data/import.h"
#include "renzan/data/testing.h"

namespace renzan {
namespace {

using testing::ExpectError;
using ::testing::IsEmpty;
using testing::WriteText;

constexpr char kInspectedSchema[] =
    "columns: {{y: {{role: label}}, x: {}, c: {{role: categorical}}, m: {{role: multi_hot}}}}\n";
constexpr char kText[] = "y,x,c,m\n1,3,a,u|v\n0,3,b,\n1,-1,a,u|u\n1,,,v\n0,7,rare,w\n";

void Import(const TemporaryDirectory& dir, std::vector<std::string> vocabulary,
            const std::string& dense = "{role: dense}") {
  WriteText(dir / "in.csv", kText);
  WriteFileAtomically(dir / "schema.yaml", fmt::format(kInspectedSchema, dense));
  ImportOptions options;
  options.inputs = {dir / "in.csv"};
  options.format = "csv";
  options.schema = dir / "schema.yaml";
  options.output = dir / "d";
  options.vocabulary = std::move(vocabulary);
  ImportDataset(options);
}

TEST(Inspect, CountsEveryKindOfFeature) {
  TemporaryDirectory dir;
  Import(dir, {"threshold:2", "m=threshold:1"});
  const DatasetSummary summary = InspectDataset(Dataset(dir / "d"), 2);
  EXPECT_EQ(summary.rows, 5);
  EXPECT_EQ(summary.label_mean, 0.6);
  ASSERT_EQ(summary.features.size(), 3u);

  const FeatureSummary& x = summary.features[0];
  EXPECT_EQ(x.kind, "dense");
  EXPECT_EQ(x.values, 5);
  EXPECT_EQ(x.missing, 1);
  EXPECT_EQ(x.distinct, 3);
  EXPECT_EQ(x.min, -1);
  EXPECT_EQ(x.max, 7);
  EXPECT_EQ(x.mean, 12.0 / 5);
  ASSERT_EQ(x.top.size(), 2u);
  EXPECT_EQ(x.top[0].value, "3");
  EXPECT_EQ(x.top[0].count, 2);
  EXPECT_EQ(x.top[0].label_mean, 0.5);
  EXPECT_EQ(x.top[1].value, "-1");

  const FeatureSummary& c = summary.features[1];
  EXPECT_EQ(c.kind, "one-hot");
  EXPECT_EQ(c.missing, 1);
  EXPECT_EQ(c.distinct, 1);  // a: rare values have a row, but are no value
  EXPECT_EQ(c.num_embeddings, 3);
  ASSERT_EQ(c.top.size(), 2u);
  EXPECT_EQ(c.top[0].value, "(rare or unseen)");
  EXPECT_EQ(c.top[1].value, "a");
  EXPECT_EQ(c.top[1].label_mean, 1);

  const FeatureSummary& m = summary.features[2];
  EXPECT_EQ(m.kind, "multi-hot");
  EXPECT_EQ(m.values, 6);
  EXPECT_EQ(m.missing, 1);
  EXPECT_EQ(m.distinct, 3);
  EXPECT_EQ(m.top[0].value, "u");
  EXPECT_EQ(m.top[0].count, 3);
  EXPECT_EQ(m.top[0].label_mean, 1);
}

TEST(Inspect, DoesNotKnowWhatIsMissingWhereItWasFilled) {
  for (const auto& [column, missing] : {std::pair("{role: dense, fill: mean}", -1),
                                        {"{role: dense, fill: 0}", -1},
                                        {"{role: dense, transform: log, fill: mean}", -1},
                                        {"{role: dense, transform: log}", 2},
                                        {"{role: dense}", 1}}) {
    const TemporaryDirectory dir;
    Import(dir, {"threshold:1"}, column);
    EXPECT_EQ(InspectDataset(Dataset(dir / "d"), 1).features[0].missing, missing) << column;
  }
}

TEST(Inspect, HashedFeaturesShowIds) {
  TemporaryDirectory dir;
  Import(dir, {"hash:1000"});
  const DatasetSummary summary = InspectDataset(Dataset(dir / "d"), 1);
  EXPECT_EQ(summary.features[1].distinct, 3);
  EXPECT_EQ(summary.features[1].vocabulary, "hash:1000");
  EXPECT_GE(std::stoi(summary.features[1].top[0].value), 1);
  EXPECT_EQ(summary.features[1].top[0].count, 2);
}

TEST(Inspect, DistinctNumbersAreCapped) {
  TemporaryDirectory dir;
  {
    DatasetWriter writer(dir / "d", {"y", {"x"}, {}});
    for (int i = 1; i <= 100'002; ++i) {
      const float dense[] = {static_cast<float>(i)};
      writer.Append(0, dense, {});
    }
    writer.Finish();
  }
  const DatasetSummary summary = InspectDataset(Dataset(dir / "d"), 0);
  EXPECT_EQ(summary.features[0].distinct, 100'000);
  EXPECT_TRUE(summary.features[0].distinct_capped);
  EXPECT_THAT(summary.features[0].top, IsEmpty());
}

TEST(Inspect, StopsOnRequest) {
  TemporaryDirectory dir;
  Import(dir, {});
  ExpectError(ErrorCode::kTempFail, ::testing::_,
              [&] { InspectDataset(Dataset(dir / "d"), 1, [] { return true; }); });
}

}  // namespace
}  // namespace renzan
