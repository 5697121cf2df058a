// Runs the independent reader printed in docs/formats/checkpoint.md.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "renzan/checkpoint/testing.h"

namespace renzan {
namespace {

// The Python code in the document, which defines read_checkpoint.
std::string DocumentedReader() {
  const std::string text = ReadFile(FORMAT_DOCUMENT);
  const std::string open = "```python\n";
  const size_t begin = text.find(open, text.find("## Reading a checkpoint")) + open.size();
  return text.substr(begin, text.find("```", begin) - begin);
}

class FormatDocument : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0)
      GTEST_SKIP() << "needs python3 with numpy";
  }

  // Runs `checks` with the tensors of `checkpoint` as `t`.
  void Check(const std::string& checkpoint, const std::string& checks) {
    WriteFileAtomically(dir_ / "read.py", DocumentedReader() + "import sys\n" +
                                              "t = read_checkpoint(sys.argv[1])\n" + checks);
    const std::string command =
        fmt::format("/usr/bin/python3 {} {}", dir_ / "read.py", dir_ / checkpoint);
    EXPECT_EQ(std::system(command.c_str()), 0);
  }

  TemporaryDirectory dir_;
  TestModel model_;
};

TEST_F(FormatDocument, ItsReaderReadsASavedModel) {
  model_.Save(dir_ / "model");
  Check("model", R"(
assert len(t) == 4
assert t["bottom.0.weight"].tolist() == [[1, 2], [3, 4], [5, 6]]
assert t["embedding.C1.weight"].shape == (10, 4)
assert t["embedding.C1.weight/rowwise_adagrad"].sum() == 10
manifest = json.load(open(sys.argv[1] + "/manifest.json"))
lines = ["step %d\n" % manifest["step"]]
for key in sorted(t, key=lambda k: k.encode()):
    digest = hashlib.sha256(t[key].tobytes()).hexdigest()
    lines.append("%s %s %s\n" % (key, list(t[key].shape), digest))
assert hashlib.sha256("".join(lines).encode()).hexdigest() == manifest["model_sha256"]
)");
}

TEST_F(FormatDocument, ItsReaderReadsEveryType) {
  SaveEveryType(dir_ / "step-00000001");
  Check("step-00000001", R"(
assert len(t) == 11
for kind, dtype in {**TYPES, "BF16": "<f4"}.items():
    assert t["model." + kind + "/x"].dtype == np.dtype(dtype), kind
    assert t["model." + kind + "/x"].shape == (3,)
assert t["model.I16/x"].tolist() == [1, 2, 0]
)");
}

TEST_F(FormatDocument, ItsReaderComposesIncrements) {
  model_.SaveFull(dir_.path(), 10);
  model_.Update(3, 0.1f);
  model_.Update(9, 0.3f);
  model_.SaveIncrement(dir_.path(), 20, 10, {3, 9});
  model_.SaveIncrement(dir_.path(), 30, 10, {3, 9}, true);
  model_.Save(dir_ / "model", 20);
  const std::string checks = R"(
import os
model = read_checkpoint(os.path.join(sys.argv[1], os.pardir, "model"))
assert t.pop("progress.auc").tolist() == [5, 4, 5]
assert sorted(t) == sorted(model)
for key in model:
    if INT8 and key == "embedding.C1.weight":
        changed = (t[key] != model[key]).any(1)
        assert changed.nonzero()[0].tolist() == [3, 9], changed
        assert abs(t[key] - model[key]).max() < 0.9 / 255 / 2 + 1e-6
    else:
        assert t[key].tobytes() == model[key].tobytes(), key
)";
  Check("step-00000020", "INT8 = False" + checks);
  Check("step-00000030", "INT8 = True" + checks);
}

// Row block 1 of 2, column block 1 of 2, of which row 2 was trained.
TEST_F(FormatDocument, ItsReaderComputesInitialRows) {
  const std::string block = "embedding.C1.row_block_1_of_2.column_block_1_of_2";
  const std::vector<int32_t> rows = {2};
  const std::vector<float> trained = {1, 2, 3, 4, 5, 6};
  const std::string checks = R"(
manifest = json.load(open(sys.argv[1] + "/manifest.json"))
for key, value in t.items():
    hashes = [tensor["sha256"] for tensor in manifest["files"][0]["initial_rows"]["tensors"]
              if tensor["key"] == key]
    if value.dtype == np.dtype("<f4") and BF16 and not "/" in key:
        value = (value.view("<u4") >> 16).astype("<u2")
    assert [hashlib.sha256(value.tobytes()).hexdigest()] == hashes, key
assert len(t) == 2
)";
  for (const auto& [dtype, distribution] : {std::pair{DType::kF32, Distribution::kUniform},
                                            {DType::kF16, Distribution::kUniform},
                                            {DType::kBF16, Distribution::kUniform},
                                            {DType::kF32, Distribution::kNormal},
                                            {DType::kBF16, Distribution::kNormal},
                                            {DType::kF32, Distribution::kZeros}}) {
    const InitialRows initial = {
        .key = 0x9C41F07A52D3BE68, .bound = 0.037f, .state = 0.1f, .distribution = distribution};
    const TensorInfo weight{block + ".weight", {10, 6}, dtype};
    const TensorInfo state{block + ".weight/adagrad", {10, 6}, DType::kF32};
    std::vector<std::byte> encoded(EncodedBytes(FloatTypeOf(dtype), trained.size()));
    Encode(FloatTypeOf(dtype), trained, encoded.data());
    const TensorSource changed{
        weight.key, {1, 6}, dtype, [&](size_t offset, std::span<std::byte> out) {
          std::copy_n(encoded.data() + offset, out.size(), out.data());
        }};
    const TensorFile file{.name = "x",
                          .tensors = {SourceOf(block + ".rows", {1}, rows), changed,
                                      SourceOf(state.key, {1, 6}, trained)},
                          .sparse = TensorFile::Sparse{.initial = initial,
                                                       .tensors = {weight, state},
                                                       .rows = [&] { return std::span(rows); }}};
    const std::string name = fmt::format("model-{}-{}", Name(dtype), Name(distribution));
    CheckpointWriter writer(dir_ / name);
    CheckpointManifest manifest{.step = 7};
    manifest.files = {WriteCheckpointFile(writer.location(), file, {.hash_tensors = true})};
    writer.CheckAndCommit(manifest);
    Check(name, fmt::format("BF16 = {}", dtype == DType::kBF16 ? "True" : "False") + checks);
  }
}

}  // namespace
}  // namespace renzan
