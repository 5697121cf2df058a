#include "renzan/data/synth/synth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "renzan/data/import.h"
#include "renzan/data/synth/teacher_report.h"
#include "renzan/data/testing.h"

namespace renzan {
namespace {

using ::testing::ElementsAre;
using testing::ExpectError;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::NamesIn;
using testing::ReadAll;

SynthOptions SmallSynth(const std::string& output, int64_t rows, int64_t first_row = 0) {
  SynthOptions options;
  options.output = output;
  options.rows = rows;
  options.first_row = first_row;
  return options;
}

std::string SynthText(const std::string& path) {
  LineReader lines({path});
  std::string text;
  for (std::string_view line; lines.Next(&line);) text += std::string(line) + "\n";
  return text;
}

TEST(Synth, SameSeedSameBytes) {
  TemporaryDirectory dir;
  for (const std::string suffix : {"", ".gz", ".zst"}) {
    Synthesize(SmallSynth(dir / ("a" + suffix), 500));
    Synthesize(SmallSynth(dir / ("b" + suffix), 500));
    EXPECT_EQ(ReadFile(dir / ("a" + suffix)), ReadFile(dir / ("b" + suffix)));
    EXPECT_EQ(SynthText(dir / ("a" + suffix)), SynthText(dir / "a"));
  }
  SynthOptions other = SmallSynth(dir / "other", 500);
  other.teacher.seed = 2;
  Synthesize(other);
  EXPECT_NE(ReadFile(dir / "other"), ReadFile(dir / "a"));
}

TEST(Synth, RowsDependOnlyOnTheirIndex) {
  TemporaryDirectory dir;
  Synthesize(SmallSynth(dir / "whole", 300));
  Synthesize(SmallSynth(dir / "head", 120));
  Synthesize(SmallSynth(dir / "tail", 180, 120));
  EXPECT_EQ(ReadFile(dir / "head") + ReadFile(dir / "tail"), ReadFile(dir / "whole"));
}

TEST(Synth, BayesOptimalScoresAreInTheExpectedRange) {
  TemporaryDirectory dir;
  for (uint64_t seed : {1, 2, 3}) {
    SynthOptions options = SmallSynth(dir / fmt::format("d{}", seed), 50'000);
    options.format = "dataset";
    options.teacher.seed = seed;
    const SynthResult result = Synthesize(options);
    EXPECT_NEAR(result.bayes_optimal.best_auc, 0.80, 0.02) << "seed " << seed;
    EXPECT_NEAR(result.label_rate, 0.25, 0.03) << "seed " << seed;
    // Better than predicting the label rate.
    const double p = result.label_rate;
    EXPECT_LT(result.bayes_optimal.best_log_loss,
              -p * std::log(p) - (1 - p) * std::log(1 - p) - 0.05);
    const Dataset dataset(options.output);
    dataset.Verify();
    ASSERT_TRUE(dataset.bayes_optimal().has_value());
    EXPECT_EQ(dataset.bayes_optimal()->best_auc, result.bayes_optimal.best_auc);
  }
}

TEST(Synth, TheTeacherIsCalibrated) {
  const Teacher teacher(TeacherOptions{});
  SynthRow row;
  std::vector<double> expected(10), seen(10), rows(10);
  for (int64_t i = 0; i < 50'000; ++i) {
    teacher.Draw(i, &row);
    const size_t bin = std::min<size_t>(static_cast<size_t>(row.probability * 10), 9);
    expected[bin] += row.probability;
    seen[bin] += row.label;
    ++rows[bin];
  }
  for (size_t bin = 0; bin < 10; ++bin)
    EXPECT_NEAR(seen[bin], expected[bin], 4 * std::sqrt(rows[bin] / 4 + 1)) << "bin " << bin;
}

TEST(Synth, IdsFollowAPowerLaw) {
  const Teacher teacher(TeacherOptions{});
  EXPECT_EQ(teacher.schema().categorical.front().num_embeddings, 5);
  EXPECT_EQ(teacher.schema().categorical.back().num_embeddings, 20'001);
  SynthRow row;
  std::map<int64_t, int> counts;
  const int rows = 50'000;
  for (int64_t i = 0; i < rows; ++i) {
    teacher.Draw(i, &row);
    ++counts[row.one_hot.back()];
  }
  std::vector<int> sorted;
  for (const auto& [id, count] : counts) sorted.push_back(count);
  std::sort(sorted.rbegin(), sorted.rend());
  // The exponent estimated from ranks 1 and 32 lies in the range it is drawn from.
  const double exponent = std::log(static_cast<double>(sorted[0]) / sorted[31]) / std::log(32.0);
  EXPECT_GT(exponent, 1.0);
  EXPECT_LT(exponent, 1.5);
  EXPECT_GT(sorted.size(), 1000u);
}

TEST(Synth, TextAndDatasetHoldTheSameRows) {
  TemporaryDirectory dir;
  const SynthResult text = Synthesize(SmallSynth(dir / "a.tsv.gz", 2000));
  ImportOptions import;
  import.inputs = {dir / "a.tsv.gz"};
  import.output = dir / "imported";
  import.vocabulary = {"threshold:1"};
  import.unseen = {"0"};
  ImportDataset(import);
  SynthOptions direct = SmallSynth(dir / "direct", 2000);
  direct.format = "dataset";
  Synthesize(direct);

  const Dataset imported_set(dir / "imported"), direct_set(dir / "direct");
  EXPECT_EQ(imported_set.bayes_optimal()->best_auc, text.bayes_optimal.best_auc);
  EXPECT_EQ(direct_set.bayes_optimal()->best_log_loss, text.bayes_optimal.best_log_loss);
  const Batch imported = ReadAll(imported_set), straight = ReadAll(direct_set);
  EXPECT_EQ(imported.label, straight.label);
  EXPECT_EQ(imported.dense, straight.dense);
  for (size_t f = 0; f < 26; ++f) {
    // Ids differ but correspond one to one, and missing is 0 in both.
    std::map<int64_t, int64_t> name = {{0, 0}};
    std::set<int64_t> used = {0};
    for (size_t i = 0; i < 2000; ++i) {
      const int64_t from = straight.categorical[f].values[i];
      const int64_t to = imported.categorical[f].values[i];
      const auto [entry, fresh] = name.emplace(from, to);
      ASSERT_EQ(entry->second, to) << "feature " << f << " row " << i;
      ASSERT_EQ(fresh, used.insert(to).second) << "feature " << f << " row " << i;
    }
  }
}

TEST(Synth, MultiHotAndShape) {
  TemporaryDirectory dir;
  SynthOptions options = SmallSynth(dir / "d", 3000);
  options.format = "dataset";
  options.teacher.num_one_hot = 4;
  options.teacher.num_multi_hot = 2;
  options.teacher.rows_per_table = 100;
  options.shard_rows = 1000;
  Synthesize(options);
  const Dataset dataset(dir / "d");
  ASSERT_EQ(dataset.schema().categorical.size(), 6u);
  EXPECT_TRUE(dataset.schema().categorical[5].multi_hot);
  for (const CategoricalFeature& feature : dataset.schema().categorical)
    EXPECT_LE(feature.num_embeddings, 101);
  const Batch batch = ReadAll(dataset);
  const double bag = static_cast<double>(batch.categorical[5].values.size()) / 3000;
  EXPECT_NEAR(bag, 3, 0.2);
}

TEST(Synth, AStoppedOrFailedRunLeavesNothing) {
  TemporaryDirectory dir;
  for (const char* format : {"criteo", "dataset"}) {
    SynthOptions options = SmallSynth(dir / "out.gz", 100'000);
    options.format = format;
    int64_t seen = 0;
    options.progress = [&](int64_t rows) { seen = rows; };
    options.stop = [&] { return seen > 5000; };
    ExpectError(ErrorCode::kTempFail, HasSubstr("stopped"), [&] { Synthesize(options); });
    EXPECT_THAT(NamesIn(dir.path()), IsEmpty());
  }
  SynthOptions options = SmallSynth(dir / "out", 10);
  options.teacher.num_one_hot = 5;
  ExpectError(ErrorCode::kUsage, HasSubstr("--format dataset"), [&] { Synthesize(options); });
  options = SmallSynth(dir / "out", 10);
  options.teacher.rows_per_table = 3;
  ExpectError(ErrorCode::kUsage, HasSubstr("--rows-per-table"), [&] { Synthesize(options); });
  options = SmallSynth(dir / "none/out", 10);
  ExpectError(ErrorCode::kCantCreate, HasSubstr("none/"), [&] { Synthesize(options); });
  testing::WriteText(dir / "out", "mine");
  WriteTeacherReport(dir / "out", 1, 1, 0, {0.5, 0.5});
  ExpectError(ErrorCode::kCantCreate, HasSubstr("already exists"),
              [&] { Synthesize(SmallSynth(dir / "out", 10)); });
  EXPECT_THAT(NamesIn(dir.path()), ElementsAre("out", "out.synth.json"));
}

TEST(TeacherScore, AgreesWithCountingPairs) {
  TeacherScore score;
  const std::vector<std::pair<double, bool>> rows = {{0.1, false}, {0.4, true},  {0.35, false},
                                                     {0.8, true},  {0.4, false}, {0.2, true}};
  double won = 0, pairs = 0, loss = 0;
  for (const auto& [p, positive] : rows) {
    score.Add(p, positive);
    loss -= std::log(positive ? p : 1 - p);
    for (const auto& [q, other] : rows) {
      if (!positive || other) continue;
      ++pairs;
      won += p > q ? 1 : p == q ? 0.5 : 0;
    }
  }
  EXPECT_DOUBLE_EQ(score.Result().best_auc, won / pairs);
  EXPECT_NEAR(score.Result().best_log_loss, loss / 6, 1e-12);
  EXPECT_EQ(score.label_rate(), 0.5);
}

}  // namespace
}  // namespace renzan
