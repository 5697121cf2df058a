#include "renzan/checkpoint/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "renzan/base/file/staged.h"
#include "renzan/base/sha256.h"
#include "renzan/checkpoint/testing.h"

namespace renzan {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

std::vector<float> ReadAll(CheckpointReader& reader, const std::string& key) {
  std::vector<float> values(static_cast<size_t>(NumElements(reader.Info(key).shape)));
  reader.Read(key, 0, values);
  return values;
}

TEST(Checkpoint, ReadsBackWhatWasSaved) {
  TemporaryDirectory dir;
  const TestModel saved;
  const std::string sum = saved.Save(dir / "m");
  CheckpointReader model(dir / "m");
  EXPECT_EQ(model.step(), 7);
  EXPECT_EQ(model.kind(), CheckpointKind::kFull);
  EXPECT_EQ(model.config(), "seed: 1\n");
  EXPECT_EQ(model.manifest().unix_ms, 1'700'000'000'000);
  EXPECT_EQ(model.manifest().model_sha256, sum);
  EXPECT_EQ(model.base_manifest(), nullptr);
  EXPECT_THAT(model.keys(),
              ElementsAre("bottom.0.weight", "bottom.0.weight/adagrad", "embedding.C1.weight",
                          "embedding.C1.weight/rowwise_adagrad"));
  EXPECT_EQ(model.Info("embedding.C1.weight").shape, (std::vector<int64_t>{10, 4}));
  EXPECT_EQ(ReadAll(model, "embedding.C1.weight"), saved.table);
  EXPECT_TRUE(model.ReplacedRows("embedding.C1.weight").empty());
  std::vector<float> weight(6), piece(2);
  model.Read("bottom.0.weight", {3, 2}, weight);
  EXPECT_EQ(weight, saved.weight);
  model.Read("bottom.0.weight", 3, piece);
  EXPECT_THAT(piece, ElementsAre(4, 5));
}

TEST(Checkpoint, AppearsCompleteOrNotAtAll) {
  TemporaryDirectory dir;
  {
    CheckpointWriter writer(dir / "m");
    WriteCheckpointFile(writer.location(), "dense.safetensors", TestModel().Dense(), {});
  }
  EXPECT_FALSE(FileExists(dir / "m"));
  EXPECT_FALSE(FileExists(StagedDirectory::StagingPath(dir / "m")));
  TestModel().Save(dir / "m");
  EXPECT_THROW(CheckpointWriter(dir / "m"), Error);
}

TEST(Checkpoint, WritingCanBeCancelled) {
  TemporaryDirectory dir;
  std::atomic<bool> cancel = false;
  int pieces = 0;
  const TensorSource large = {
      "a", {int64_t{1} << 20}, DType::kF32, [&](size_t, std::span<std::byte>) {
        cancel = ++pieces == 2;
      }};
  try {
    WriteCheckpointFile(dir / "", "x", std::span(&large, 1), {.cancel = &cancel});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTempFail);
  }
  EXPECT_EQ(pieces, 2);
  EXPECT_FALSE(FileExists(dir / "x"));
}

// A tensor larger than one piece is written in order, each byte once.
TEST(Checkpoint, TensorsLargerThanAPiece) {
  TemporaryDirectory dir;
  std::vector<float> values((1 << 18) + 3);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const TensorSource source = SourceOf("a", {static_cast<int64_t>(values.size())}, values);
  CheckpointWriter writer(dir / "m");
  CheckpointManifest manifest;
  manifest.files = {WriteCheckpointFile(writer.location(), "x", std::span(&source, 1), {})};
  writer.Commit(manifest);
  CheckpointReader reader(dir / "m");
  EXPECT_EQ(ReadAll(reader, "a"), values);
}

// For any order and shapes, every tensor is aligned to its element size.
TEST(Checkpoint, TensorsOfAllTypesShareAFile) {
  TemporaryDirectory dir;
  const std::vector<float> values = {1, 2, 3};
  const std::vector<int32_t> rows = {4, 5, 6};
  const std::vector<int64_t> counts = {7};
  const TensorSource q8 = {
      "q8", {3}, DType::kU8, [](size_t, std::span<std::byte> out) { out[2] = std::byte{9}; }};
  const std::vector<TensorSource> sources = {q8, SourceOf("values", {3}, values),
                                             SourceOf("rows", {3}, rows),
                                             SourceOf("progress.counts", {1}, counts)};
  const CheckpointFile file = WriteCheckpointFile(dir / "", "x", sources, {});
  EXPECT_EQ(file.tensors[0].info.key, "progress.counts");
  const SafetensorsReader reader(dir / "x");
  EXPECT_THAT(reader.Find("values")->f32(), ElementsAre(1, 2, 3));
  EXPECT_THAT(reader.Find("rows")->i32(), ElementsAre(4, 5, 6));
  EXPECT_THAT(reader.Find("progress.counts")->i64(), ElementsAre(7));
  EXPECT_EQ(reader.Find("q8")->u8()[2], 9);
}

// The same tensors in other files, with progress, are the same model.
TEST(Checkpoint, ModelSha256DoesNotDependOnFiles) {
  TemporaryDirectory dir;
  const TestModel saved;
  const std::string sum = saved.Save(dir / "two");
  CheckpointWriter writer(dir / "five");
  CheckpointManifest manifest{.step = 7, .config = "seed: 2\n"};
  for (const auto& tensors : {saved.Table(), saved.Dense(), saved.Progress()})
    for (const TensorSource& tensor : tensors)
      manifest.files.push_back(WriteCheckpointFile(writer.location(),
                                                   fmt::format("{}", manifest.files.size()),
                                                   std::span(&tensor, 1), {.hash_tensors = true}));
  writer.Commit(manifest);
  EXPECT_EQ(CheckpointReader(dir / "five").manifest().model_sha256, sum);
  EXPECT_NE(saved.Save(dir / "later", 8), sum);
  TestModel other = saved;
  other.table[39] = std::nextafter(other.table[39], 1.f);
  EXPECT_NE(other.Save(dir / "other"), sum);
}

TEST(Checkpoint, NamesMissingKeysWrongShapesAndTypes) {
  TemporaryDirectory dir;
  TestModel().SaveFull(dir.path(), 7);
  CheckpointReader model(dir / "step-00000007");
  std::vector<float> out(6);
  EXPECT_THAT(DataErrorOf([&] { model.Read("bottom.1.weight", 0, out); }),
              HasSubstr("no tensor 'bottom.1.weight'; the nearest is 'bottom.0.weight'"));
  EXPECT_THAT(DataErrorOf([&] {
                model.Read("bottom.0.weight", {2, 3}, out);
              }),
              HasSubstr("has shape [3, 2], expected [2, 3]"));
  EXPECT_THAT(DataErrorOf([&] { model.ReadI64("bottom.0.weight"); }), HasSubstr("is F32"));
  EXPECT_THAT(DataErrorOf([&] { model.Read("progress.auc", 0, out); }), HasSubstr("is I64"));
  EXPECT_THAT(model.ReadI64("progress.auc"), ElementsAre(3, 4, 5));
  EXPECT_EQ(model.manifest().model_sha256, "");
  EXPECT_EQ(model.run().at("isa"), "avx2");
}

class Increment : public ::testing::Test {
 protected:
  Increment() {
    model_.SaveFull(dir_.path(), 10);
    for (const int32_t row : {0, 3, 4, 9}) model_.Update(row, 0.125f * static_cast<float>(row + 1));
  }
  std::string At(int64_t step) const { return dir_ / CheckpointName(step); }

  TemporaryDirectory dir_;
  TestModel model_;
};

TEST_F(Increment, IsReadMergedWithItsBase) {
  model_.SaveIncrement(dir_.path(), 20, 10, {0, 3, 4, 9});
  CheckpointReader whole(At(20));
  EXPECT_EQ(whole.step(), 20);
  EXPECT_EQ(whole.kind(), CheckpointKind::kIncremental);
  ASSERT_NE(whole.base_manifest(), nullptr);
  EXPECT_EQ(whole.base_manifest()->step, 10);
  EXPECT_EQ(whole.keys(), CheckpointReader(At(10)).keys());
  EXPECT_EQ(ReadAll(whole, "embedding.C1.weight"), model_.table);
  EXPECT_EQ(ReadAll(whole, "embedding.C1.weight/rowwise_adagrad"), model_.row_state);
  EXPECT_EQ(ReadAll(whole, "bottom.0.weight"), model_.weight);
  EXPECT_EQ(whole.ReadI64("progress.auc"), model_.counts);
  EXPECT_THAT(whole.ReplacedRows("embedding.C1.weight"), ElementsAre(0, 3, 4, 9));
  EXPECT_TRUE(whole.ReplacedRows("bottom.0.weight").empty());
  whole.VerifyAll();
  // The base itself is unchanged.
  CheckpointReader base(At(10));
  EXPECT_EQ(ReadAll(base, "embedding.C1.weight"), TestModel().table);
}

TEST(IncrementOfHalfRows, IsReadMergedWithItsBase) {
  for (const FloatType type : {FloatType::kFloat16, FloatType::kBFloat16}) {
    for (const bool int8 : {false, true}) {
      TemporaryDirectory dir;
      TestModel model;
      model.table_type = type;
      model.SaveFull(dir.path(), 10);
      const std::vector<float> before = model.SavedTable();
      for (const int32_t row : {2, 3}) model.Update(row, 0.3f);
      model.SaveIncrement(dir.path(), 20, 10, {2, 3}, int8);
      CheckpointReader whole(dir / CheckpointName(20));
      EXPECT_EQ(whole.Info("embedding.C1.weight").dtype, DTypeOf(type));
      std::vector<float> expected = model.SavedTable();
      const std::vector<float> read = ReadAll(whole, "embedding.C1.weight");
      if (int8) {
        for (size_t i = 8; i < 16; ++i) {
          EXPECT_NEAR(read[i], model.table[i], 0.01f);
          expected[i] = read[i];
        }
        RoundTrip(type, expected);  // also 8-bit rows are read as values of the type
      }
      EXPECT_EQ(read, expected);
      EXPECT_EQ(ReadAll(whole, "embedding.C1.weight/rowwise_adagrad"), model.row_state);
      whole.VerifyAll();
      CheckpointReader base(dir / CheckpointName(10));
      EXPECT_EQ(ReadAll(base, "embedding.C1.weight"), before);
    }
  }
}

// Increments whose rows have another type than the base's cannot be merged.
TEST_F(Increment, RowsHaveTheTypeOfTheBase) {
  model_.table_type = FloatType::kBFloat16;
  model_.SaveIncrement(dir_.path(), 20, 10, {0, 3, 4, 9});
  EXPECT_THAT(DataErrorOf([&] { CheckpointReader reader(At(20)); }),
              HasSubstr("it lacks tensor 'embedding.C1.weight' F32 [4, 4]"));
}

// Any range, even with ends inside rows, reads the same as that part of the whole tensor.
TEST_F(Increment, ReadsAnyRange) {
  model_.SaveIncrement(dir_.path(), 20, 10, {0, 3, 4, 9});
  model_.SaveIncrement(dir_.path(), 30, 10, {0, 3, 4, 9}, true);
  for (const int64_t step : {20, 30}) {
    CheckpointReader reader(At(step));
    const std::vector<float> all = ReadAll(reader, "embedding.C1.weight");
    for (size_t first = 0; first <= all.size(); ++first) {
      for (size_t end = first; end <= all.size(); ++end) {
        std::vector<float> piece(end - first);
        reader.Read("embedding.C1.weight", static_cast<int64_t>(first), piece);
        ASSERT_THAT(piece, ElementsAreArray(all.begin() + static_cast<ptrdiff_t>(first),
                                            all.begin() + static_cast<ptrdiff_t>(end)))
            << step << ": " << first << " to " << end;
      }
    }
  }
}

TEST_F(Increment, NoRowOrEveryRowMayHaveChanged) {
  const TestModel before;
  before.SaveIncrement(dir_.path(), 20, 10, {});
  CheckpointReader none(At(20));
  EXPECT_EQ(ReadAll(none, "embedding.C1.weight"), before.table);
  model_.SaveIncrement(dir_.path(), 30, 10, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  CheckpointReader every(At(30));
  EXPECT_EQ(ReadAll(every, "embedding.C1.weight"), model_.table);
}

TEST_F(Increment, Int8RowsAreWithinTheirBoundAndStatesAreExact) {
  model_.SaveIncrement(dir_.path(), 20, 10, {0, 3, 4, 9}, true);
  CheckpointReader reader(At(20));
  EXPECT_EQ(reader.manifest().quantization, "int8");
  const std::vector<float> table = ReadAll(reader, "embedding.C1.weight");
  size_t inexact = 0;
  for (size_t i = 0; i < table.size(); ++i) {
    const size_t row = i / 4 * 4;
    const float scale = (model_.table[row + 3] - model_.table[row]) / 255;
    EXPECT_NEAR(table[i], model_.table[i], scale * 0.5001f) << i;
    inexact += table[i] != model_.table[i] ? 1 : 0;
  }
  EXPECT_GT(inexact, 0u);
  EXPECT_EQ(ReadAll(reader, "embedding.C1.weight/rowwise_adagrad"), model_.row_state);
}

TEST_F(Increment, NeedsItsOriginalBaseInTheSameDirectory) {
  model_.SaveIncrement(dir_.path(), 20, 10, {0, 3, 4, 9});
  std::filesystem::rename(At(10), dir_ / "away");
  const std::string missing = DataErrorOf([&] { CheckpointReader reader(At(20)); });
  EXPECT_THAT(missing, HasSubstr(At(20)));
  EXPECT_THAT(missing, HasSubstr(At(10)));
  // Another checkpoint under the base's name.
  model_.SaveFull(dir_.path(), 10);
  const std::string other = DataErrorOf([&] { CheckpointReader reader(At(20)); });
  EXPECT_THAT(other, HasSubstr(At(20)));
  EXPECT_THAT(other, HasSubstr("it is not the original base"));
  std::filesystem::remove_all(At(10));
  std::filesystem::rename(dir_ / "away", At(10));
  EXPECT_EQ(DataErrorOf([&] { CheckpointReader(At(20)).VerifyAll(); }), "no error");
  EXPECT_EQ(DataErrorOf([&] { CheckpointReader(At(20) + "/").VerifyAll(); }), "no error");
  std::filesystem::create_directory_symlink(At(20), dir_ / "link");
  std::filesystem::create_directory(dir_ / "elsewhere");
  std::filesystem::create_directory_symlink(At(20), dir_ / "elsewhere/link");
  EXPECT_EQ(DataErrorOf([&] { CheckpointReader(dir_ / "link").VerifyAll(); }), "no error");
  EXPECT_EQ(DataErrorOf([&] { CheckpointReader(dir_ / "elsewhere/link").VerifyAll(); }),
            "no error");
}

TEST_F(Increment, ABaseIsNeverAnIncrement) {
  model_.SaveIncrement(dir_.path(), 20, 10, {0, 3, 4, 9});
  model_.SaveIncrement(dir_.path(), 30, 20, {1});
  EXPECT_THAT(DataErrorOf([&] { CheckpointReader reader(At(30)); }),
              HasSubstr("not a full checkpoint"));
}

TEST_F(Increment, RejectsRowsOutOfOrderOrRange) {
  int64_t step = 20;
  for (const std::vector<int32_t>& rows :
       {std::vector<int32_t>{3, 0}, {3, 3}, {9, 10}, {-1, 3}, {2147483647}}) {
    TestModel large = model_;
    large.table.resize(100);  // rows out of range still need values
    if (rows.back() > 10 || rows.front() < 0) {
      CheckpointWriter writer(At(step));
      CheckpointManifest manifest{.kind = CheckpointKind::kIncremental, .step = step};
      manifest.base = {CheckpointName(10), CheckpointManifest::Read(At(10)).manifest_sha256};
      std::vector<TensorSource> tensors =
          large.ChangedRows(std::vector<int32_t>(rows.size(), 0), false)[0].second;
      tensors[0] =
          SourceOf("embedding.C1.rows", {static_cast<int64_t>(rows.size())}, std::span(rows));
      manifest.files = {WriteCheckpointFile(writer.location(), "t", tensors, {}),
                        WriteCheckpointFile(writer.location(), "d", large.Dense(), {})};
      writer.Commit(manifest);
    } else {
      large.row_state.resize(20);
      large.SaveIncrement(dir_.path(), step, 10, rows);
    }
    CheckpointReader reader(At(step));
    EXPECT_THAT(DataErrorOf([&] { ReadAll(reader, "embedding.C1.weight"); }),
                HasSubstr("'embedding.C1.rows' holds row"));
    EXPECT_THAT(DataErrorOf([&] { reader.VerifyAll(); }), HasSubstr(At(step)));
    ++step;
  }
}

// A lost part must not pass for an unchanged one.
TEST_F(Increment, MustHoldEveryTensorOfTheBase) {
  const auto error = [&](int64_t step, const std::vector<std::vector<TensorSource>>& files) {
    CheckpointWriter writer(At(step));
    CheckpointManifest manifest{.kind = CheckpointKind::kIncremental, .step = step};
    manifest.base = {CheckpointName(10), CheckpointManifest::Read(At(10)).manifest_sha256};
    for (const auto& tensors : files)
      manifest.files.push_back(WriteCheckpointFile(
          writer.location(), fmt::format("{}", manifest.files.size()), tensors, {}));
    writer.Commit(manifest);
    return DataErrorOf([&] { CheckpointReader reader(At(step)); });
  };
  const std::vector<int32_t> rows = {3};
  const std::vector<TensorSource> changed = model_.ChangedRows(rows, false)[0].second;
  EXPECT_EQ(error(20, {model_.Dense(), changed}), "no error");
  EXPECT_THAT(error(21, {model_.Dense()}), HasSubstr("lacks tensor 'embedding.C1.rows'"));
  EXPECT_THAT(error(22, {changed}), HasSubstr("lacks tensor 'bottom.0.weight' [3, 2]"));
  EXPECT_THAT(error(23, {model_.Dense(), {changed[0], changed[2]}}),
              HasSubstr("lacks tensor 'embedding.C1.weight/rowwise_adagrad' F32 [1]"));
  const TestModel::Files int8 = model_.ChangedRows(rows, true);
  EXPECT_THAT(error(24, {model_.Dense(), int8[0].second, int8[1].second}),
              HasSubstr("lacks tensor 'embedding.C1.weight' F32 [1, 4]"));
  const std::vector<TensorSource> more = {SourceOf("top.0.bias", {6}, model_.weight)};
  EXPECT_THAT(error(25, {model_.Dense(), changed, more}),
              HasSubstr("the base has no tensor for 'top.0.bias'"));
}

}  // namespace
}  // namespace renzan
