// Tables are taken some rows at a time, by columns: the datasets are those of CSV files, which are
// read row by row, wherever bad rows, null values and held-out rows lie.

#include <charconv>
#include <cmath>

#include "renzan/base/philox.h"
#include "renzan/data/arrow/arrow_column.h"
#include "renzan/data/arrow/arrow_source.h"
#include "renzan/data/arrow/arrow_testing.h"
#include "renzan/data/text/csv_testing.h"

namespace renzan {
namespace {

using testing::Csv;
using testing::Lists;
using testing::Numbers;
using testing::TestArray;
using testing::TestStream;
using testing::TextsOf;

constexpr char kManyRoles[] =
    "missing: [\"?\"]\n"
    "columns:\n"
    "  y: {role: label}\n"
    "  x: {role: dense, transform: log}\n"
    "  z: {role: dense, transform: standardize, fill: mean}\n"
    "  item: {role: categorical}\n"
    "  other: {role: categorical, table: item, missing: []}\n"
    "  rating: {role: bag_weights, bag: history}\n"
    "  history: {role: multi_hot, table: item}\n"
    "  big: {role: categorical, missing: []}\n"
    "  when: {role: date, date: \"%s\", parts: {hour: {role: categorical}, day: {role: dense}}}\n"
    "  w: {role: weight}\n"
    "  name: {role: key}\n";
constexpr int64_t kTableRows = 5 * static_cast<int64_t>(ArrowColumn::kMaxRows) / 2;

// Row r of both tables; about one in `bad_every` is bad, in one column or two.
struct ManyColumns {
  std::vector<std::optional<int32_t>> y, items_of_history;
  std::vector<std::optional<double>> x;
  std::vector<std::optional<float>> z, w, ratings;
  testing::Texts item, name;
  std::vector<std::optional<int64_t>> other, big, when;
  std::vector<std::optional<int>> history, rating;
  std::string csv = "y,x,z,item,other,rating,history,big,when,w,name\n";

  void Add(uint64_t seed, int64_t row, uint32_t bad_every) {
    const auto draw = [&](uint64_t what) {
      return Philox::Draw(seed, static_cast<uint64_t>(row), what)[0];
    };
    const auto text = [](const auto& value) { return value ? fmt::format("{}", *value) : ""; };
    const bool is_bad = draw(0) % bad_every == 0;
    const bool at_label = is_bad && draw(1) % 3 == 0, at_dense = is_bad && draw(1) % 3 != 1;
    y.push_back(at_label ? 7 : static_cast<int32_t>(draw(2) % 2));
    x.push_back(draw(3) % 5 == 0 ? std::nullopt : std::optional(draw(3) % 1000 / 8.0));
    if (at_dense) x.back() = std::nan("");
    z.push_back(draw(4) % 6 == 0 ? std::nullopt
                                 : std::optional(static_cast<float>(draw(4) % 997) / 100));
    item.push_back(draw(5) % 7 == 0 ? std::nullopt
                                    : std::optional(fmt::format("{}", draw(5) % 40)));
    other.push_back(draw(6) % 40);
    history.push_back(static_cast<int>(draw(7) % 4));
    std::string bag, weights;
    for (int i = 0; i < *history.back(); ++i) {
      items_of_history.push_back(static_cast<int32_t>(draw(100 + static_cast<uint64_t>(i)) % 60));
      bag += fmt::format("{}{}", i == 0 ? "" : "|", *items_of_history.back());
    }
    // Another count is bad, too, except for an empty bag of a text.
    rating.push_back(*history.back() + (is_bad && *history.back() > 0 && draw(12) % 2 == 0));
    for (int i = 0; i < *rating.back(); ++i) {
      ratings.push_back(static_cast<float>(draw(200 + static_cast<uint64_t>(i)) % 9) / 4);
      weights += fmt::format("{}{}", i == 0 ? "" : "|", *ratings.back());
    }
    big.push_back(draw(8) % 9 == 0 ? std::nullopt
                                   : std::optional(int64_t{draw(8)} * (draw(9) % 2 == 0 ? 1 : -1) *
                                                   (draw(9) % 3 == 0 ? 1'000'000'000 : 1)));
    when.push_back(1'700'000'000 + int64_t{draw(10)} % 100'000'000);
    // The first of two bad columns is reported.
    w.push_back(is_bad && draw(1) % 3 == 1 ? -1.0f : static_cast<float>(draw(11) % 8));
    name.push_back(fmt::format("row {}", row));
    csv += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", text(y.back()), text(x.back()),
                       text(z.back()), item.back().value_or(""), text(other.back()), weights, bag,
                       text(big.back()), text(when.back()), text(w.back()), *name.back());
  }

  std::vector<TestArray> Take() {
    std::vector<TestArray> all;
    all.push_back(Numbers("i", "y", y));
    all.push_back(Numbers("g", "x", x));
    all.push_back(Numbers("f", "z", z));
    all.push_back(TextsOf<int32_t>("u", "item", item));
    all.push_back(Numbers("l", "other", other));
    all.push_back(Lists<int32_t>("+l", "rating", rating, Numbers("f", "item", ratings)));
    all.push_back(Lists<int32_t>("+l", "history", history, Numbers("i", "item", items_of_history)));
    all.push_back(Numbers("l", "big", big));
    all.push_back(Numbers("tss:", "when", when));
    all.back().format = "tss:";
    all.push_back(Numbers("f", "w", w));
    all.push_back(TextsOf<int32_t>("u", "name", name));
    return all;
  }
};

void ExpectSameAsCsv(uint64_t seed, uint32_t bad_every,
                     const std::function<void(ImportOptions*)>& set,
                     const std::vector<std::string>& datasets = {""}) {
  ManyColumns rows;
  for (int64_t row = 0; row < kTableRows; ++row) rows.Add(seed, row, bad_every);
  Csv csv(kManyRoles, {rows.csv});
  csv.options.skip_bad_rows = true;
  csv.options.shard_rows = 100;
  set(&csv.options);
  csv.Import();
  std::vector<std::vector<TestArray>> batches;
  batches.push_back(rows.Take());
  TestStream stream(std::move(batches));
  ImportOptions options = csv.options;
  options.output = csv.dir / "table";
  const auto source = MakeArrowSource(stream.get(), kManyRoles, "schema", Labels::kRequired);
  ImportRows(options, *source);
  // It holds the SHA-256 of all other files but the list of bad rows.
  for (const std::string& dataset : datasets)
    EXPECT_EQ(ReadFile(csv.options.output + dataset + "/dataset.yaml"),
              ReadFile(options.output + dataset + "/dataset.yaml"))
        << seed;
}

TEST(ArrowBlocks, GiveTheDatasetsOfRows) {
  for (uint64_t seed = 0; seed < 2; ++seed)
    for (const uint32_t bad_every : {1000u, 9u, 2u}) {
      ExpectSameAsCsv(seed, bad_every, [](ImportOptions*) {});
      ExpectSameAsCsv(seed, bad_every, [](ImportOptions* options) {
        options->vocabulary = {"threshold:2", "big=hash:1000"};
        options->keep_negatives = 0.4;
        options->unseen = {"0.1"};
      });
      ExpectSameAsCsv(seed, bad_every,
                      [](ImportOptions* options) {
                        options->vocabulary = {"hash:50"};
                        options->split = "group:name@0.3";
                      },
                      {"/train", "/test"});
    }
}

// Some columns of a row may be taken before another is bad: it is told as if it were read alone.
TEST(ArrowBlocks, TheFirstBadRowAndItsFirstBadColumnAreReported) {
  ManyColumns rows;
  for (int64_t row = 0; row < kTableRows; ++row) rows.Add(0, row, 1'000'000'000);
  rows.x[70] = std::nan("");
  rows.y[71] = 9;
  rows.w[69] = -1.0f;
  rows.w[70] = -1.0f;
  std::vector<std::vector<TestArray>> batches;
  batches.push_back(rows.Take());
  TestStream stream(std::move(batches));
  const Csv csv(kManyRoles, {});
  const auto source = MakeArrowSource(stream.get(), kManyRoles, "schema", Labels::kRequired);
  testing::ExpectError(ErrorCode::kData, ::testing::HasSubstr("row 69: column 10 (w): '-1'"),
                       [&] { ImportRows(csv.options, *source); });
  EXPECT_FALSE(FileExists(csv.options.output));
}

double AsText(float number) {
  char text[64];
  const char* const end = std::to_chars(text, text + sizeof text, number).ptr;
  double value = 0;
  std::from_chars(text, end, value);
  return value;
}

TEST(ArrowValues, FloatsMeanTheirShortestText) {
  std::vector<std::optional<float>> floats = {0.1f,    0.3f,        1e-30f,    1e30f,   0.5f,
                                              -0.125f, 16777217.0f, 1e10f,     3.1415f, 1e-45f,
                                              0.0f,    1.5e-5f,     8388607.5f};
  for (uint64_t i = 0; i < 20'000; ++i) {
    const uint32_t bits = Philox::Draw(5, i)[0];
    float number = 0;
    std::memcpy(&number, &bits, sizeof number);
    if (std::isfinite(number)) floats.emplace_back(number);
    floats.emplace_back(static_cast<float>(bits >> 8) / (i % 2 == 0 ? 16777216.0f : 1000.0f));
  }
  TestArray array = Numbers("f", "x", floats);
  ArrowSchema schema{};
  ArrowArray stored{};
  array.Fill(&schema);
  array.Fill(&stored);
  ArrowValues values;
  values.Bind(ArrowType::Of(schema), &stored, "x");
  std::vector<double> numbers(floats.size());
  values.Numbers(0, numbers);
  for (size_t i = 0; i < floats.size(); ++i) {
    EXPECT_EQ(numbers[i], AsText(*floats[i])) << *floats[i];
    EXPECT_EQ(values.Number(static_cast<int64_t>(i)), numbers[i]) << *floats[i];
  }
}

// Values are hashed in groups of one length.
TEST(Vocabulary, AColumnHasTheIdsOfItsValues) {
  for (const char* spec : {"hash:2", "hash:1000", "hash:4294967296", "threshold:1"}) {
    std::vector<std::string> texts;
    for (size_t i = 0; i < 300; ++i)
      texts.emplace_back(Philox::Draw(3, i)[0] % 40, static_cast<char>('a' + i % 26));
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    Vocabulary by_column(spec), by_value(spec);
    std::vector<int64_t> ids(views.size());
    by_column.Ids(views, 7, 2, ids);
    for (size_t i = 0; i < views.size(); ++i)
      EXPECT_EQ(ids[i], by_value.Id(views[i], 7 + static_cast<int64_t>(i), 2)) << spec << i;
  }
}

}  // namespace
}  // namespace renzan
