#include "renzan/checkpoint/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "renzan/checkpoint/model_diff.h"
#include "renzan/checkpoint/safetensors.h"
#include "renzan/checkpoint/testing.h"

namespace renzan {
namespace {

TEST(ModelDiff, ReportsWhereAndByHowMuch) {
  TemporaryDirectory dir;
  TestModel model;
  model.Save(dir / "a");
  model.weight[4] = 5.5f;
  model.table[3] = -0.25f;
  model.table[5] = NAN;
  model.Save(dir / "b");
  CheckpointReader a(dir / "a"), b(dir / "b");
  const ModelDiff diff = DiffModels(a, b);
  EXPECT_FALSE(diff.same());
  EXPECT_EQ(diff.tensors, 4);
  EXPECT_EQ(diff.tensors_differing, 2);
  EXPECT_EQ(diff.values, 62);
  EXPECT_EQ(diff.values_differing, 3);
  EXPECT_EQ(diff.max_abs_difference, INFINITY);
  ASSERT_TRUE(diff.first);
  EXPECT_EQ(diff.first->key, "bottom.0.weight");
  EXPECT_EQ(diff.first->index, 4);
  EXPECT_EQ(diff.first->a, 5);
  EXPECT_EQ(diff.first->b, 5.5f);
  // A NaN equals itself, because the bits are compared.
  CheckpointReader again(dir / "b");
  EXPECT_TRUE(DiffModels(b, again).same());
}

TEST(ModelDiff, StepsKeysAndShapesMatter) {
  TemporaryDirectory dir;
  const TestModel model;
  model.Save(dir / "a", 1);
  model.Save(dir / "b", 2);
  CheckpointWriter writer(dir / "c");
  const std::vector<TensorSource> tensors = {SourceOf("bottom.0.weight", {2, 3}, model.weight),
                                             SourceOf("top.0.weight", {6}, model.weight)};
  CheckpointManifest manifest{.step = 1};
  manifest.files = {WriteCheckpointFile(writer.location(), "x", tensors, {})};
  writer.Commit(manifest);
  CheckpointReader a(dir / "a"), b(dir / "b"), c(dir / "c");
  const ModelDiff steps = DiffModels(a, b);
  EXPECT_EQ(steps.tensors_differing, 0);
  EXPECT_FALSE(steps.same());
  const ModelDiff keys = DiffModels(a, c);
  EXPECT_FALSE(keys.same());
  EXPECT_EQ(keys.only_in_a.size(), 3u);
  EXPECT_EQ(keys.only_in_b, std::vector<std::string>{"top.0.weight"});
  EXPECT_EQ(keys.other_shape, std::vector<std::string>{"bottom.0.weight"});
}

// An increment, a full checkpoint with progress and a model are equal if their values are.
TEST(ModelDiff, KindsAndProgressDoNotMatter) {
  TemporaryDirectory dir;
  TestModel model;
  model.SaveFull(dir.path(), 10);
  model.Update(3, 0.5f);
  model.SaveIncrement(dir.path(), 20, 10, {3});
  model.Save(dir / "model", 20);
  CheckpointReader base(dir / "step-00000010"), increment(dir / "step-00000020"),
      full(dir / "model");
  EXPECT_TRUE(DiffModels(increment, full).same());
  const ModelDiff diff = DiffModels(base, increment);
  EXPECT_EQ(diff.tensors_differing, 3);
  EXPECT_EQ(diff.values_differing, 1 + 4 + 1);
}

TEST(Export, WritesAllTensorsOrOnlyTheWeights) {
  TemporaryDirectory dir;
  const std::string sum = TestModel().Save(dir / "m");
  CheckpointReader model(dir / "m");
  EXPECT_EQ(ExportModel(model, dir / "all"), 4);
  EXPECT_EQ(ExportModel(model, dir / "weights", true), 2);
  const SafetensorsReader all(dir / "all"), weights(dir / "weights");
  EXPECT_NE(all.Find("embedding.C1.weight/rowwise_adagrad"), nullptr);
  EXPECT_EQ(weights.Find("embedding.C1.weight/rowwise_adagrad"), nullptr);
  EXPECT_EQ(weights.Find("embedding.C1.weight")->f32()[39], 0.25f);
  EXPECT_EQ(all.metadata().at("renzan.step"), "7");
  EXPECT_EQ(all.metadata().at("renzan.model_sha256"), sum);
  EXPECT_THROW(ExportModel(model, dir / "all"), Error);
}

TEST(Export, KeepsRowsOfSixteenBits) {
  TemporaryDirectory dir;
  TestModel model;
  model.table_type = FloatType::kBFloat16;
  model.Update(3, 0.3f);
  model.Save(dir / "m");
  CheckpointReader reader(dir / "m");
  EXPECT_EQ(ExportModel(reader, dir / "all"), 4);
  const SafetensorsReader file(dir / "all");
  const SafetensorsReader::Tensor& rows = *file.Find("embedding.C1.weight");
  EXPECT_EQ(rows.info.dtype, DType::kBF16);
  std::vector<float> values(model.table.size());
  Decode(FloatType::kBFloat16, rows.bytes.data(), values);
  EXPECT_EQ(values, model.SavedTable());
}

// A PyTorch program's checkpoint: every type, and modules with arbitrary names.
TEST(Export, CopiesTensorsThatTablesDoNotHave) {
  TemporaryDirectory dir;
  SaveEveryType(dir / "m");
  CheckpointReader model(dir / "m");
  EXPECT_EQ(ExportModel(model, dir / "all"), 11);
  EXPECT_EQ(ExportModel(model, dir / "weights", true), 10);
  const SafetensorsReader all(dir / "all"), weights(dir / "weights");
  EXPECT_EQ(weights.Find("optimizer.F64/step"), nullptr);
  for (const std::string& key : model.keys()) {
    const SafetensorsReader::Tensor* tensor = all.Find(key);
    ASSERT_NE(tensor, nullptr) << key;
    EXPECT_EQ(tensor->info, model.Info(key));
    std::vector<std::byte> bytes(NumBytes(tensor->info));
    model.ReadBytes(key, 0, bytes);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), tensor->bytes.begin())) << key;
  }
}

TEST(ModelDiff, ComparesEveryType) {
  TemporaryDirectory dir;
  SaveEveryType(dir / "a");
  CheckpointReader a(dir / "a"), same(dir / "a");
  EXPECT_TRUE(DiffModels(a, same).same());
  for (const char* dtype : {"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL"}) {
    const std::string key = std::string("model.") + dtype + "/x";
    SaveEveryType(dir / dtype, key);
    CheckpointReader b(dir / dtype);
    const ModelDiff diff = DiffModels(a, b);
    EXPECT_EQ(diff.tensors_differing, 1) << dtype;
    EXPECT_EQ(diff.values_differing, 1) << dtype;
    ASSERT_TRUE(diff.first) << dtype;
    EXPECT_EQ(diff.first->key, key);
    EXPECT_EQ(diff.first->index, 2);
    EXPECT_GT(diff.max_abs_difference, 0);
  }
}

TEST(Export, MergesAnIncrementWithItsBase) {
  TemporaryDirectory dir;
  TestModel model;
  model.SaveFull(dir.path(), 10);
  model.Update(3, 0.5f);
  model.SaveIncrement(dir.path(), 20, 10, {3});
  model.SaveIncrement(dir.path(), 21, 10, {3}, true);
  CheckpointReader exact(dir / "step-00000020"), int8(dir / "step-00000021");
  EXPECT_EQ(ExportModel(exact, dir / "exact"), 4);
  ExportModel(int8, dir / "int8");
  const SafetensorsReader file(dir / "exact");
  EXPECT_THAT(file.Find("embedding.C1.weight")->f32(), testing::ElementsAreArray(model.table));
  EXPECT_THAT(file.Find("bottom.0.weight")->f32(), testing::ElementsAreArray(model.weight));
  EXPECT_EQ(file.Find("progress.auc"), nullptr);
  EXPECT_EQ(SafetensorsReader(dir / "int8").metadata().at("renzan.quantization"), "int8");
}

}  // namespace
}  // namespace renzan
