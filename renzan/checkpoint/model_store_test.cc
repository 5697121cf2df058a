#include "renzan/checkpoint/model_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <numeric>

#include "renzan/base/error.h"
#include "renzan/base/sha256.h"
#include "renzan/checkpoint/export.h"
#include "renzan/checkpoint/model_diff.h"

namespace renzan {
namespace {

using ::testing::HasSubstr;

struct TestModel {
  std::vector<float> weight = {1, 2, 3, 4, 5, 6}, state = {.1f, .2f, .3f, .4f, .5f, .6f};
  std::vector<float> table = std::vector<float>(40, 0.25f), row_state = std::vector<float>(10, 1);

  std::vector<NamedTensor> Dense() const {
    return {{"bottom.0.weight", {3, 2}, weight}, {"bottom.0.weight/adagrad", {3, 2}, state}};
  }
  std::vector<NamedTensor> Table() const {
    return {{"embedding.C1.weight", {10, 4}, table},
            {"embedding.C1.weight/rowwise_adagrad", {10}, row_state}};
  }

  // As two workers would.
  std::string Save(const std::string& dir, int64_t step = 7) const {
    ModelWriter writer(dir);
    const std::string staging = ModelWriter::StagingPath(dir);
    const std::string sent = WriteModelFile(staging, "table.C1.safetensors", Table()).ToJson();
    return writer.Commit(
        {ModelFile::FromJson(sent), WriteModelFile(staging, "dense.safetensors", Dense())}, step,
        "seed: 1\n");
  }
};

// The message of the kData error that `body` throws.
std::string ErrorOf(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kData) << error.what();
    return error.what();
  }
  return "no error";
}

void Edit(const std::string& path, const std::function<void(std::string&)>& edit) {
  std::string content = ReadFile(path);
  edit(content);
  WriteFileAtomically(path, content);
}

TEST(ModelStore, ReadsBackWhatWasSaved) {
  TemporaryDirectory dir;
  const TestModel saved;
  const std::string sum = saved.Save(dir / "m");
  ModelReader model(dir / "m");
  EXPECT_EQ(model.step(), 7);
  EXPECT_EQ(model.config(), "seed: 1\n");
  EXPECT_EQ(model.model_sha256(), sum);
  EXPECT_EQ(model.keys(), (std::vector<std::string>{"bottom.0.weight", "bottom.0.weight/adagrad",
                                                    "embedding.C1.weight",
                                                    "embedding.C1.weight/rowwise_adagrad"}));
  const NamedTensor table = model.Tensor("embedding.C1.weight");
  EXPECT_EQ(table.shape, (std::vector<int64_t>{10, 4}));
  EXPECT_TRUE(std::equal(table.values.begin(), table.values.end(), saved.table.begin()));
  const auto weight = model.Tensor("bottom.0.weight", {3, 2});
  EXPECT_TRUE(std::equal(weight.begin(), weight.end(), saved.weight.begin()));
}

TEST(ModelStore, AppearsWholeOrNotAtAll) {
  TemporaryDirectory dir;
  {
    ModelWriter writer(dir / "m");
    WriteModelFile(writer.staging(), "dense.safetensors", TestModel().Dense());
  }
  EXPECT_FALSE(FileExists(dir / "m"));
  EXPECT_FALSE(FileExists(ModelWriter::StagingPath(dir / "m")));
  TestModel().Save(dir / "m");
  EXPECT_THROW(ModelWriter(dir / "m"), Error);
}

// The same tensors in other files, written by others: the same model.
TEST(ModelStore, Sha256DoesNotDependOnFiles) {
  TemporaryDirectory dir;
  const TestModel saved;
  const std::string sum = saved.Save(dir / "two");
  ModelWriter writer(dir / "four");
  std::vector<ModelFile> files;
  for (const auto& tensors : {saved.Table(), saved.Dense()})
    for (const NamedTensor& tensor : tensors)
      files.push_back(
          WriteModelFile(writer.staging(), fmt::format("{}", files.size()), std::span(&tensor, 1)));
  EXPECT_EQ(writer.Commit(files, 7, "seed: 2\n"), sum);
  EXPECT_NE(saved.Save(dir / "later", 8), sum);
  TestModel other = saved;
  other.table[39] = std::nextafter(other.table[39], 1.f);
  EXPECT_NE(other.Save(dir / "other"), sum);
}

TEST(ModelStore, Sha256IsWhatTheFormatSays) {
  const std::vector<ModelFile> files = {
      {.name = "x", .bytes = 0, .sha256 = "", .tensors = {{"b", {}, "22"}, {"a", {3, 2}, "11"}}}};
  EXPECT_EQ(ModelSha256(files, 5), Sha256Hex("step 5\na [3, 2] 11\nb [] 22\n"));
}

TEST(ModelStore, AKeyInTwoFilesIsRefused) {
  TemporaryDirectory dir;
  ModelWriter writer(dir / "m");
  const auto a = WriteModelFile(writer.staging(), "a", TestModel().Dense());
  const auto b = WriteModelFile(writer.staging(), "b", TestModel().Dense());
  EXPECT_THAT(ErrorOf([&] { writer.Commit({a, b}, 1, ""); }), HasSubstr("in two of the model's"));
}

TEST(ModelStore, MissingKeysAndWrongShapesAreNamed) {
  TemporaryDirectory dir;
  TestModel().Save(dir / "m");
  ModelReader model(dir / "m");
  EXPECT_THAT(ErrorOf([&] { model.Tensor("bottom.1.weight"); }),
              HasSubstr("no tensor 'bottom.1.weight'; the nearest is 'bottom.0.weight'"));
  EXPECT_THAT(ErrorOf([&] {
                model.Tensor("bottom.0.weight", {2, 3});
              }),
              HasSubstr("has shape [3, 2], expected [2, 3]"));
}

TEST(ModelStore, DamageIsFoundAndNamed) {
  TemporaryDirectory dir;
  TestModel().Save(dir / "m");
  const std::string file = dir / "m/table.C1.safetensors", sum = Sha256OfFile(file);
  Edit(file, [](std::string& content) { content.back() ^= 1; });
  const std::string message = ErrorOf([&] { ModelReader(dir / "m").VerifyAll(); });
  EXPECT_THAT(message, HasSubstr(file));
  EXPECT_THAT(message, HasSubstr(sum));
  EXPECT_THAT(message, HasSubstr(Sha256OfFile(file)));
  ModelReader model(dir / "m");
  EXPECT_EQ(ErrorOf([&] { model.Tensor("bottom.0.weight"); }), "no error");
  EXPECT_THAT(ErrorOf([&] { model.Tensor("embedding.C1.weight"); }), HasSubstr("is damaged"));
  EXPECT_EQ(ErrorOf([&] { ModelReader(dir / "m", false).VerifyAll(); }), "no error");
  Edit(file, [](std::string& content) { content.pop_back(); });
  EXPECT_THAT(ErrorOf([&] { ModelReader(dir / "m", false); }), HasSubstr("the manifest says"));
  EXPECT_EQ(std::remove(file.c_str()), 0);
  try {
    ModelReader model(dir / "m");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNoInput);
    EXPECT_THAT(error.what(), HasSubstr(file));
  }
}

// Any one flipped bit of the manifest is refused: as damage, or as a file that is not there.
TEST(ModelStore, ADamagedManifestIsRefused) {
  TemporaryDirectory dir;
  TestModel().Save(dir / "m");
  const std::string path = dir / "m/manifest.json", content = ReadFile(path);
  for (size_t i = 0; i < content.size(); ++i) {
    if (content[i] == ' ' || content[i] == '\n') continue;
    std::string damaged = content;
    damaged[i] ^= 1;
    WriteFileAtomically(path, damaged);
    EXPECT_THROW(ModelReader(dir / "m").VerifyAll(), Error) << i << ": " << damaged;
  }
  for (size_t size = 0; size + 2 < content.size(); ++size) {
    WriteFileAtomically(path, content.substr(0, size));
    EXPECT_THROW(ModelReader(dir / "m"), Error) << size;
  }
}

TEST(ModelDiff, SaysWhereAndHowMuch) {
  TemporaryDirectory dir;
  TestModel model;
  model.Save(dir / "a");
  model.weight[4] = 5.5f;
  model.table[3] = -0.25f;
  model.table[5] = NAN;
  model.Save(dir / "b");
  ModelReader a(dir / "a"), b(dir / "b");
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
  // NaN equals itself here: the bits are the same.
  ModelReader again(dir / "b");
  EXPECT_TRUE(DiffModels(b, again).same());
}

TEST(ModelDiff, StepsKeysAndShapesMatter) {
  TemporaryDirectory dir;
  const TestModel model;
  model.Save(dir / "a", 1);
  model.Save(dir / "b", 2);
  ModelWriter writer(dir / "c");
  const std::vector<NamedTensor> tensors = {{"bottom.0.weight", {2, 3}, model.weight},
                                            {"top.0.weight", {6}, model.weight}};
  writer.Commit({WriteModelFile(writer.staging(), "x", tensors)}, 1, "");
  ModelReader a(dir / "a"), b(dir / "b"), c(dir / "c");
  const ModelDiff steps = DiffModels(a, b);
  EXPECT_EQ(steps.tensors_differing, 0);
  EXPECT_FALSE(steps.same());
  const ModelDiff keys = DiffModels(a, c);
  EXPECT_FALSE(keys.same());
  EXPECT_EQ(keys.only_in_a.size(), 3u);
  EXPECT_EQ(keys.only_in_b, std::vector<std::string>{"top.0.weight"});
  EXPECT_EQ(keys.other_shape, std::vector<std::string>{"bottom.0.weight"});
}

TEST(Export, OneFileWithAllOrOnlyTheWeights) {
  TemporaryDirectory dir;
  TestModel().Save(dir / "m");
  ModelReader model(dir / "m");
  EXPECT_EQ(ExportModel(model, dir / "all"), 4);
  EXPECT_EQ(ExportModel(model, dir / "weights", true), 2);
  const SafetensorsReader all(dir / "all"), weights(dir / "weights");
  EXPECT_NE(all.Find("embedding.C1.weight/rowwise_adagrad"), nullptr);
  EXPECT_EQ(weights.Find("embedding.C1.weight/rowwise_adagrad"), nullptr);
  EXPECT_EQ(weights.Find("embedding.C1.weight")->values[39], 0.25f);
  EXPECT_EQ(all.metadata().at("renzan.step"), "7");
  EXPECT_THROW(ExportModel(model, dir / "all"), Error);
}

// A reader that shares no code with ours: Python with numpy, from docs/formats/model.md alone.
TEST(ModelStore, AnIndependentReaderAgrees) {
  if (std::system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0)
    GTEST_SKIP() << "needs python3 with numpy";
  TemporaryDirectory dir;
  TestModel().Save(dir / "m");
  WriteFileAtomically(dir / "read.py", R"(
import hashlib, json, os, struct, sys
import numpy
directory = sys.argv[1]
manifest = json.load(open(os.path.join(directory, "manifest.json")))
assert manifest["format"] == "renzan-model" and manifest["version"] == 1
tensors = {}
for entry in manifest["files"]:
    raw = open(os.path.join(directory, entry["name"]), "rb").read()
    assert len(raw) == entry["bytes"]
    assert hashlib.sha256(raw).hexdigest() == entry["sha256"]
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + length])
    header.pop("__metadata__", None)
    assert sorted(header) == sorted(t["key"] for t in entry["tensors"])
    for key, info in header.items():
        begin, end = info["data_offsets"]
        assert info["dtype"] == "F32"
        values = numpy.frombuffer(raw[8 + length + begin:8 + length + end], "<f4")
        tensors[key] = values.reshape(info["shape"])
lines = ["step %d\n" % manifest["step"]]
for key in sorted(tensors, key=lambda k: k.encode()):
    digest = hashlib.sha256(tensors[key].tobytes()).hexdigest()
    lines.append("%s %s %s\n" % (key, list(tensors[key].shape), digest))
assert hashlib.sha256("".join(lines).encode()).hexdigest() == manifest["model_sha256"]
assert tensors["bottom.0.weight"].tolist() == [[1, 2], [3, 4], [5, 6]]
assert tensors["embedding.C1.weight"].shape == (10, 4)
assert tensors["embedding.C1.weight/rowwise_adagrad"].sum() == 10
)");
  const std::string command = fmt::format("/usr/bin/python3 {} {}", dir / "read.py", dir / "m");
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace renzan
