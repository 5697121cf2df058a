#include "renzan/data/dataset/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <string_view>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/xxhash.h"
#include "renzan/data/dataset/dataset_writer.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/dataset/npy.h"
#include "renzan/data/testing.h"

namespace renzan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::ExpectError;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const DatasetSchema kDatasetSchema = {
    "click", {"I1", "I2"}, {{"user", 100, false}, {"genres/x", 50, true}, {"item", 1000, false}}};

// Row r: label r % 2, dense {r, -r}, user r % 100, r % 3 genres, item 999 - r.
void WriteRows(DatasetWriter& writer, int rows) {
  for (int r = 0; r < rows; ++r) {
    const float dense[] = {static_cast<float>(r), static_cast<float>(-r)};
    const int64_t ids[] = {r % 100, 999 - r};
    const std::vector<int64_t> genres[] = {
        std::vector<int64_t>(static_cast<size_t>(r % 3), r % 50)};
    writer.Append(static_cast<float>(r % 2), dense, ids, genres);
  }
}

void WriteDataset(const std::string& path, int rows, int64_t shard_rows = 4) {
  DatasetWriter writer(path, kDatasetSchema, {.shard_rows = shard_rows, .created_by = "test"});
  WriteRows(writer, rows);
  writer.Finish();
}

const DatasetOptions kUnverified = {.verify_blocks = false};

void Replace(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = ReadFile(path);
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  WriteFileAtomically(path, text.replace(at, from.size(), to));
}

// Overwrites the `index`-th element after the header.
template <typename T>
void Poke(const std::string& path, size_t index, T value) {
  std::string bytes = ReadFile(path);
  std::memcpy(bytes.data() + kNpyHeaderBytes + index * sizeof value, &value, sizeof value);
  WriteFileAtomically(path, bytes);
}

TEST(Dataset, ReadsRowsInAnyOrderAcrossShards) {
  TemporaryDirectory dir;
  WriteDataset(dir / "d", 10);
  const Dataset dataset(dir / "d");
  EXPECT_EQ(dataset.num_rows(), 10);
  EXPECT_TRUE(FileExists(dir / "d/shard-00002/ids.npy"));
  EXPECT_EQ(dataset.schema().categorical[1].name, "genres/x");
  EXPECT_TRUE(dataset.schema().categorical[1].multi_hot);
  EXPECT_EQ(dataset.schema().categorical[2].num_embeddings, 1000);

  Batch batch;
  const int64_t rows[] = {9, 0, 5, 5, 4};
  dataset.Read(rows, &batch);
  EXPECT_EQ(batch.size, 5);
  EXPECT_THAT(batch.label, ElementsAre(1, 0, 1, 1, 0));
  EXPECT_THAT(batch.dense, ElementsAre(9, -9, 0, -0.0f, 5, -5, 5, -5, 4, -4));
  EXPECT_THAT(batch.categorical[0].values, ElementsAre(9, 0, 5, 5, 4));
  EXPECT_TRUE(batch.categorical[0].one_hot());
  EXPECT_THAT(batch.categorical[1].offsets, ElementsAre(0, 0, 0, 2, 4, 5));
  EXPECT_THAT(batch.categorical[1].values, ElementsAre(5, 5, 5, 5, 4));
  EXPECT_THAT(batch.categorical[2].values, ElementsAre(990, 999, 994, 994, 995));

  // The same Batch object with fewer rows: no old values remain.
  const int64_t first[] = {0};
  dataset.Read(first, &batch);
  EXPECT_THAT(batch.label, ElementsAre(0));
  EXPECT_THAT(batch.categorical[1].values, IsEmpty());
  EXPECT_THAT(batch.categorical[1].offsets, ElementsAre(0, 0));
}

TEST(Dataset, WithoutDenseOrCategorical) {
  TemporaryDirectory dir;
  {
    DatasetWriter writer(dir / "d", {"y", {}, {}});
    writer.Append(1, {}, {});
    writer.Finish();
  }
  const Dataset dataset(dir / "d");
  Batch batch;
  const int64_t rows[] = {0};
  dataset.Read(rows, &batch);
  EXPECT_THAT(batch.label, ElementsAre(1));
  EXPECT_THAT(batch.dense, IsEmpty());
}

TEST(Dataset, FingerprintDependsOnTheSamples) {
  TemporaryDirectory dir;
  WriteDataset(dir / "a", 10);
  WriteDataset(dir / "b", 10);
  WriteDataset(dir / "c", 11);
  EXPECT_EQ(Dataset(dir / "a").fingerprint(), Dataset(dir / "b").fingerprint());
  EXPECT_NE(Dataset(dir / "a").fingerprint(), Dataset(dir / "c").fingerprint());
}

TEST(Dataset, MapsIdsAtTheEnd) {
  TemporaryDirectory dir;
  {
    DatasetWriter writer(dir / "d", kDatasetSchema, {.shard_rows = 3, .map_ids_at_end = true});
    WriteRows(writer, 8);
    std::vector<std::vector<int32_t>> maps(3, std::vector<int32_t>(1000));
    for (int i = 0; i < 1000; ++i) {
      maps[0][static_cast<size_t>(i)] = i + 1;
      maps[1][static_cast<size_t>(i)] = i * 2;
      maps[2][static_cast<size_t>(i)] = 999 - i;
    }
    writer.Finish(&maps);
  }
  const Dataset dataset(dir / "d");
  dataset.Verify();
  Batch batch;
  const int64_t rows[] = {2, 7};
  dataset.Read(rows, &batch);
  EXPECT_THAT(batch.categorical[0].values, ElementsAre(3, 8));
  EXPECT_THAT(batch.categorical[1].values, ElementsAre(4, 4, 14));
  EXPECT_THAT(batch.categorical[2].values, ElementsAre(2, 7));
}

TEST(Dataset, AppearsAtomically) {
  TemporaryDirectory dir;
  {
    DatasetWriter writer(dir / "d", kDatasetSchema);
    WriteRows(writer, 3);
  }
  EXPECT_THAT(testing::NamesIn(dir.path()), IsEmpty());
  WriteDataset(dir / "d", 3);
  ExpectError(ErrorCode::kCantCreate, HasSubstr("already exists"),
              [&] { WriteDataset(dir / "d", 3); });
}

TEST(Dataset, VerifyNamesTheCorruptFile) {
  TemporaryDirectory dir;
  WriteDataset(dir / "d", 10);
  Dataset(dir / "d").Verify();
  Poke<float>(dir / "d/shard-00001/dense.npy", 3, 17.0f);
  ExpectError(ErrorCode::kData, HasSubstr("shard-00001/dense.npy: SHA-256 is"),
              [&] { Dataset(dir / "d", kUnverified).Verify(); });
}

TEST(Dataset, OpeningChecksSizeTypeAndShape) {
  TemporaryDirectory dir;
  WriteDataset(dir / "d", 10);
  const std::string label = dir / "d/shard-00000/label.npy";
  const std::string good = ReadFile(label);
  const auto open = [&] { Dataset dataset(dir / "d", kUnverified); };

  WriteFileAtomically(label, good.substr(0, good.size() - 4));
  ExpectError(ErrorCode::kData, AllOf(HasSubstr("label.npy"), HasSubstr("bytes")), open);
  WriteFileAtomically(label, good);
  Replace(label, "<f4", "<i4");
  ExpectError(ErrorCode::kData,
              AllOf(HasSubstr("label.npy: holds int32 [4]"), HasSubstr("float32 [4]")), open);
  WriteFileAtomically(label, good);
  Replace(label, "(4,), }  ", "(2, 2), }");
  ExpectError(ErrorCode::kData, HasSubstr("holds float32 [2, 2]"), open);
  Replace(label, "NUMPY", "BUMPY");
  ExpectError(ErrorCode::kData, HasSubstr("label.npy: not a .npy file"), open);
  WriteFileAtomically(label, good);
  open();
  std::remove(label.c_str());
  ExpectError(ErrorCode::kNoInput, HasSubstr("label.npy"), open);
}

TEST(Dataset, ManifestErrorsSayWhere) {
  TemporaryDirectory dir;
  const auto open = [&] { Dataset dataset(dir / "d"); };
  ExpectError(ErrorCode::kNoInput, HasSubstr("is not a dataset"), open);
  WriteDataset(dir / "d", 10);
  const std::string manifest = dir / "d/dataset.yaml";
  const std::string good = ReadFile(manifest);

  testing::RewriteManifest(dir / "d", "rows: 10", "rows: 11");
  ExpectError(ErrorCode::kData, AllOf(HasSubstr("dataset.yaml:2:"), HasSubstr("shards have 10")),
              open);
  WriteFileAtomically(manifest, good);
  testing::RewriteManifest(dir / "d", "format_version: 2", "format_version: 11");
  ExpectError(ErrorCode::kData, HasSubstr("this program reads versions 1 to 10"), open);
  WriteFileAtomically(manifest, good);
  testing::RewriteManifest(dir / "d", "dtype: float32", "dtype: int32");
  ExpectError(ErrorCode::kData, HasSubstr("is declared as int32"), open);
  WriteFileAtomically(manifest, good);
  testing::RewriteManifest(dir / "d", "multi_hot", "multihot");
  ExpectError(ErrorCode::kData, HasSubstr("did you mean 'multi_hot'"), open);
}

TEST(Dataset, ReadRejectsInvalidValues) {
  TemporaryDirectory dir;
  WriteDataset(dir / "d", 10);
  std::vector<int64_t> rows(10);
  std::iota(rows.begin(), rows.end(), 0);
  Batch batch;
  const auto read = [&] { Dataset(dir / "d", kUnverified).Read(rows, &batch); };

  const std::string ids = dir / "d/shard-00001/ids.npy";
  Poke<int32_t>(ids, 3, 1000);
  ExpectError(ErrorCode::kData,
              AllOf(HasSubstr("row 5 "), HasSubstr("'item' has id 1000, outside [0, 1000)")), read);
  Poke<int32_t>(ids, 3, -1);
  ExpectError(ErrorCode::kData, HasSubstr("has id -1"), read);
  Poke<int32_t>(ids, 3, 999);
  read();

  const std::string dense = dir / "d/shard-00001/dense.npy";
  Poke<float>(dense, 2, std::numeric_limits<float>::quiet_NaN());
  ExpectError(ErrorCode::kData, AllOf(HasSubstr("row 5 "), HasSubstr("'I1' is nan")), read);
  Poke<float>(dense, 2, -std::numeric_limits<float>::infinity());
  ExpectError(ErrorCode::kData, HasSubstr("'I1' is -inf"), read);
  Poke<float>(dense, 2, 0);

  const std::string label = dir / "d/shard-00001/label.npy";
  Poke<float>(label, 1, 0.5f);
  ExpectError(ErrorCode::kData, HasSubstr("'click' is 0.5, not 0 or 1"), read);
  Poke<float>(label, 1, 1);

  const std::string values = dir / "d/shard-00001/genres%2Fx.values.npy";
  Poke<int32_t>(values, 0, 50);
  ExpectError(ErrorCode::kData, HasSubstr("'genres/x' has id 50"), read);
  Poke<int32_t>(values, 0, 1);
  Poke<int64_t>(dir / "d/shard-00001/genres%2Fx.offsets.npy", 1, 99);
  ExpectError(ErrorCode::kData, HasSubstr("has the bag"), read);
}

// Bags are prefetched before they are checked.
TEST(Dataset, NamesTheRowOfABadBagAmongMany) {
  TemporaryDirectory dir;
  constexpr int64_t kRows = 50;
  {
    DatasetWriter writer(dir / "d",
                         {"y", {"a"}, {{.name = "c", .num_embeddings = 100, .multi_hot = true}}},
                         {.shard_rows = 30, .created_by = "test"});
    const float dense[] = {0};
    for (int64_t r = 0; r < kRows; ++r)
      writer.Append(
          0, dense, {},
          std::vector<std::vector<int64_t>>{std::vector<int64_t>(static_cast<size_t>(r % 4), r)});
    writer.Finish();
  }
  const Batch batch = testing::ReadAll(Dataset(dir / "d"));
  const FeatureIds& bags = batch.categorical[0];
  for (size_t r = 0; r < kRows; ++r) {
    ASSERT_EQ(bags.offsets[r + 1] - bags.offsets[r], static_cast<int32_t>(r % 4));
    for (auto at = bags.offsets[r]; at < bags.offsets[r + 1]; ++at)
      ASSERT_EQ(bags.values[static_cast<size_t>(at)], static_cast<int64_t>(r));
  }
  for (const int64_t offset : {int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    Poke<int64_t>(dir / "d/shard-00000/c.offsets.npy", 20, offset);
    ExpectError(ErrorCode::kData, AllOf(HasSubstr("row 19 "), HasSubstr("'c' has the bag [")),
                [&] { testing::ReadAll(Dataset(dir / "d", kUnverified)); });
  }
}

TEST(Dataset, RecordsThePreprocessing) {
  TemporaryDirectory dir;
  DatasetSchema schema = {"y", {"a", "b"}, {{"c", 9}}};
  const float dense[] = {0, 0};
  const int64_t ids[] = {1};
  const auto write = [&](const std::string& name) {
    DatasetWriter writer(dir / name, schema);
    writer.Append(1, dense, ids);
    writer.manifest().features.at("c").vocabulary = name == "hashed" ? "hash:9" : "";
    writer.Finish();
    return Dataset(dir / name);
  };
  const Dataset plain = write("plain"), hashed = write("hashed");
  schema.dense_transforms = {"log", "none"};
  const Dataset log = write("log");
  EXPECT_THAT(plain.schema().dense_transforms, ElementsAre("none", "none"));
  EXPECT_THAT(log.schema().dense_transforms, ElementsAre("log", "none"));
  EXPECT_EQ(plain.schema().categorical[0].vocabulary, "ids");
  EXPECT_EQ(hashed.schema().categorical[0].vocabulary, "hash:9");
  // The same bytes with a different meaning.
  EXPECT_NE(plain.fingerprint(), log.fingerprint());
  EXPECT_NE(plain.fingerprint(), hashed.fingerprint());
}

TEST(Dataset, RecordsTheRuleOfItsLabels) {
  TemporaryDirectory dir;
  DatasetSchema schema = {.label = "y", .dense = {"x"}, .categorical = {{"c", 9}}};
  const auto write = [&](const char* name, const std::string& rule) {
    schema.label_rule = rule;
    DatasetWriter writer(dir / name, schema);
    const float dense[] = {1};
    const int64_t ids[] = {3};
    writer.Append(1, dense, ids);
    writer.Finish();
    return Dataset(dir / name);
  };
  const Dataset plain = write("plain", ""), four = write("four", "at_least 4"),
                five = write("five", "at_least 5");
  EXPECT_EQ(plain.schema().label_rule, "");
  EXPECT_EQ(four.schema().label_rule, "at_least 4");
  EXPECT_NE(four.fingerprint(), five.fingerprint());
  EXPECT_NE(four.fingerprint(), plain.fingerprint());
  // Older datasets of this version lack the key.
  const std::string path = dir / "plain/dataset.yaml";
  std::string text = ReadFile(path);
  text.erase(text.find("label_rule"), std::string_view("label_rule: \"\"\n").size());
  text.resize(text.rfind("xxh128"));
  Xxh128 hash;
  hash.Update(text);
  WriteFileAtomically(path, text + "xxh128: " + hash.HexDigest() + "\n");
  EXPECT_EQ(Dataset(dir / "plain").fingerprint(), plain.fingerprint());
}

TEST(Dataset, ReadRejectsInvalidWeights) {
  TemporaryDirectory dir;
  {
    DatasetWriter writer(dir / "d", {.label = "y", .dense = {"x"}, .weight = "w"},
                         {.shard_rows = 2});
    const float dense[] = {1};
    for (const float weight : {0.5f, 2.0f, 1.0f}) writer.Append(1, dense, {}, {}, {}, weight);
    for (const float weight : {-1.0f, std::numeric_limits<float>::infinity(), std::nanf("")})
      ExpectError(ErrorCode::kData, HasSubstr("row 3: weight 'w' is"),
                  [&] { writer.Append(1, dense, {}, {}, {}, weight); });
    writer.Finish();
  }
  std::vector<int64_t> rows(3);
  std::iota(rows.begin(), rows.end(), 0);
  Batch batch;
  const auto read = [&] { Dataset(dir / "d", kUnverified).Read(rows, &batch); };
  read();
  EXPECT_THAT(batch.weight, ElementsAre(0.5f, 2, 1));
  const std::string weights = dir / "d/shard-00000/weight.npy";
  for (const float wrong : {-1.0f, 2.5f, std::nanf("")}) {
    Poke<float>(weights, 1, wrong);
    ExpectError(ErrorCode::kData,
                AllOf(HasSubstr("row 1 "), HasSubstr("'w' is"), HasSubstr("a weight from 0 to 2")),
                read);
    ExpectError(ErrorCode::kData, HasSubstr("weight.npy"),
                [&] { Dataset(dir / "d").Read(rows, &batch); });
  }
  testing::RewriteManifest(dir / "d", "  name: w\n", "");
  ExpectError(ErrorCode::kData, HasSubstr("name is missing"), [&] { Dataset(dir / "d"); });
}

TEST(Dataset, ReadsFormatVersion1) {
  const Dataset dataset(std::string(RENZAN_TEST_DATA) + "/version-1");
  dataset.Verify();
  const Batch batch = testing::ReadAll(dataset);
  EXPECT_THAT(batch.label, ElementsAre(1, 0, 1, 0, 1, 0));
  EXPECT_THAT(batch.categorical[0].values, ElementsAre(2, 3, 2, 1, 2, 3));
  EXPECT_THAT(dataset.schema().dense_transforms, IsEmpty());
  EXPECT_THAT(dataset.schema().categorical[0].vocabulary, ::testing::StartsWith("threshold:2:"));
  // The fingerprint of that version, so that existing runs can resume.
  EXPECT_EQ(dataset.fingerprint(),
            "3da50e611f04c827aa293e6dfa36fae4717e5ce2107ace51f40f3f58bdfbf30a");
}

TEST(DatasetWriter, RejectsInvalidValues) {
  TemporaryDirectory dir;
  DatasetWriter writer(dir / "d", {"y", {"x"}, {{"c", 3, false}}});
  const float good[] = {1}, bad[] = {std::numeric_limits<float>::infinity()};
  const int64_t id[] = {2}, out[] = {3};
  writer.Append(0, good, id);
  ExpectError(ErrorCode::kData, HasSubstr("row 1: label 'y' is 2"),
              [&] { writer.Append(2, good, id); });
  ExpectError(ErrorCode::kData, HasSubstr("'x' is inf"), [&] { writer.Append(0, bad, id); });
  ExpectError(ErrorCode::kData, HasSubstr("id 3, outside [0, 3)"),
              [&] { writer.Append(0, good, out); });
  ExpectError(ErrorCode::kConfig, HasSubstr("'x' appears twice"), [&] {
    DatasetWriter twice(dir / "e", {"y", {"x", "x"}, {}});
  });
}

// Features with more than 2^31 - 1 ids have files of 64 bits.
TEST(Dataset, WideIdsAreKept) {
  constexpr int64_t kMany = int64_t{5} << 40;
  const DatasetSchema schema = {"y",
                                {"x"},
                                {{.name = "few", .num_embeddings = 9},
                                 {.name = "many", .num_embeddings = kMany},
                                 {.name = "bags", .num_embeddings = kMany, .multi_hot = true}}};
  TemporaryDirectory dir;
  const auto id = [](int64_t row) { return (row * 1'234'567'890'123) % kMany; };
  {
    DatasetWriter writer(dir / "d", schema, {.shard_rows = 4, .created_by = "test"});
    const float dense[] = {0};
    for (int64_t r = 0; r < 10; ++r) {
      const int64_t ids[] = {r % 9, id(r)};
      const std::vector<int64_t> bags[] = {
          std::vector<int64_t>(static_cast<size_t>(r % 3), kMany - 1 - r)};
      writer.Append(0, dense, ids, bags);
    }
    const int64_t out[] = {0, kMany};
    ExpectError(ErrorCode::kData, HasSubstr("'many' has id 5497558138880, outside [0, "),
                [&] { writer.Append(0, dense, out, std::vector<std::vector<int64_t>>(1)); });
    writer.Finish();
  }
  EXPECT_EQ(ReadManifest(dir / "d").format_version, 3);
  EXPECT_THAT(testing::NamesIn(dir / "d/shard-00000"),
              ElementsAre("bags.offsets.npy", "bags.values.npy", "checksums.npy", "dense.npy",
                          "ids.npy", "label.npy", "many.ids.npy"));
  const Dataset dataset(dir / "d");
  dataset.Verify();
  const Batch batch = testing::ReadAll(dataset);
  for (int64_t r = 0; r < 10; ++r) {
    const size_t row = static_cast<size_t>(r);
    EXPECT_EQ(batch.categorical[0].values[row], r % 9);
    EXPECT_EQ(batch.categorical[1].values[row], id(r));
    const FeatureIds& bags = batch.categorical[2];
    ASSERT_EQ(bags.offsets[row + 1] - bags.offsets[row], r % 3);
    if (r % 3 > 0) {
      EXPECT_EQ(bags.values[static_cast<size_t>(bags.offsets[row])], kMany - 1 - r);
    }
  }

  Poke<int64_t>(fmt::format("{}/shard-00001/many.ids.npy", dir / "d"), 2, kMany);
  ExpectError(ErrorCode::kData, HasSubstr("row 6 (row 2 of "),
              [&] { testing::ReadAll(Dataset(dir / "d", kUnverified)); });
  WriteDataset(dir / "narrow", 3);
  EXPECT_EQ(ReadManifest(dir / "narrow").format_version, 2);
}

TEST(Dataset, NumPyReadsTheArrays) {
  if (std::system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0)
    GTEST_SKIP() << "no /usr/bin/python3 with numpy here";
  TemporaryDirectory dir;
  WriteDataset(dir / "d", 10);
  const std::string script = fmt::format(R"(
import numpy as np
d = '{}/shard-00001/'
ids, dense = np.load(d + 'ids.npy'), np.load(d + 'dense.npy', mmap_mode='r')
offsets = np.load(d + 'genres%2Fx.offsets.npy')
assert ids.dtype == np.int32 and ids.tolist() == [[r, 999 - r] for r in range(4, 8)]
assert dense.dtype == np.float32 and dense.tolist() == [[r, -r] for r in range(4, 8)]
assert np.load(d + 'label.npy').tolist() == [0, 1, 0, 1]
assert offsets.dtype == np.int64 and offsets.tolist() == [0, 1, 3, 3, 4]
assert np.load(d + 'genres%2Fx.values.npy').tolist() == [4, 5, 5, 7]
np.save('{}/again.npy', np.arange(6, dtype=np.float32).reshape(2, 3))
)",
                                         dir / "d", dir.path());
  WriteFileAtomically(dir / "check.py", script);
  EXPECT_EQ(std::system(fmt::format("/usr/bin/python3 {}", dir / "check.py").c_str()), 0);
  const NpyArray again(dir / "again.npy");
  EXPECT_THAT(again.shape(), ElementsAre(2, 3));
  EXPECT_EQ(again.values<float>()[5], 5.0f);
}

}  // namespace
}  // namespace renzan
