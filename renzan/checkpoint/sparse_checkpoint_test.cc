// Full checkpoints whose tables hold only the rows that may have been trained.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "renzan/checkpoint/export.h"
#include "renzan/checkpoint/initial_tensor.h"
#include "renzan/checkpoint/model_diff.h"
#include "renzan/checkpoint/reader.h"
#include "renzan/checkpoint/testing.h"
#include "renzan/checkpoint/whole_tensors.h"
#include "renzan/tensor/float_codec.h"

namespace renzan {
namespace {

using ::testing::HasSubstr;

// Some blocks of a table with rowwise Adagrad, of which some rows were trained.
class SparseTable {
 public:
  static constexpr int64_t kRows = 40, kColumns = 3;  // of a block
  static constexpr InitialRows kInitial = {.key = 0x9C41F07A52D3BE68, .bound = 0.1f, .state = 0.3f};

  explicit SparseTable(DType dtype) : dtype_(dtype) {}

  // `trained`: strictly ascending.
  void AddBlock(const std::string& name, std::vector<int32_t> trained) {
    const TensorInfo weight{name + ".weight", {kRows, kColumns}, dtype_};
    const TensorInfo state{name + ".weight/rowwise_adagrad", {kRows}, DType::kF32};
    Block block{
        .name = name, .infos = {weight, state}, .trained = std::move(trained), .values = {}};
    for (const TensorInfo& info : block.infos) {
      std::vector<float> values(static_cast<size_t>(NumElements(info.shape)));
      InitialTensor(kInitial, info).Read(0, values);
      block.values.push_back(std::move(values));
    }
    for (const int32_t row : block.trained) Train(block, row, 0.25f);
    blocks_.push_back(std::move(block));
  }

  // Writes the same model with all rows at `dense`, and sparsely at `sparse`.
  void Save(const std::string& dense, const std::string& sparse) const {
    for (const bool is_sparse : {false, true}) {
      CheckpointWriter writer(is_sparse ? sparse : dense);
      CheckpointManifest manifest{.step = 7};
      for (const Block& block : blocks_)
        manifest.files.push_back(
            WriteCheckpointFile(writer.location(), is_sparse ? SparseFile(block) : DenseFile(block),
                                {.hash_tensors = true}));
      writer.CheckAndCommit(std::move(manifest));
    }
  }

  // An increment on `base` in which `row` of each block has changed.
  void SaveIncrement(const std::string& base, const std::string& path, int32_t row) {
    CheckpointWriter writer(path);
    CheckpointManifest manifest{.kind = CheckpointKind::kIncremental, .step = 8};
    manifest.base = {base.substr(base.rfind('/') + 1),
                     CheckpointManifest::Read(base).manifest_sha256};
    for (Block& block : blocks_) {
      Train(block, row, 0.5f);
      TensorFile file = Rows(block, {row});
      manifest.files.push_back(WriteCheckpointFile(writer.location(), file, {}));
    }
    writer.CheckAndCommit(std::move(manifest));
  }

  TensorFile SparseFileOfFirst() const { return SparseFile(blocks_[0]); }

 private:
  struct Block {
    std::string name;
    std::vector<TensorInfo> infos;
    std::vector<int32_t> trained;
    std::vector<std::vector<float>> values;  // of each of `infos`, as stored
  };

  void Train(Block& block, int32_t row, float by) const {
    for (int64_t column = 0; column < kColumns; ++column) {
      float& value = block.values[0][static_cast<size_t>(row * kColumns + column)];
      value += by * static_cast<float>(column + 1);
      RoundTrip(FloatTypeOf(dtype_), std::span(&value, 1));
    }
    block.values[1][static_cast<size_t>(row)] += by;
  }

  static TensorSource SourceOfRows(const TensorInfo& info, const std::vector<float>& values,
                                   const std::vector<int32_t>& rows) {
    const size_t width = values.size() / static_cast<size_t>(kRows);
    std::vector<float> taken;
    for (const int32_t row : rows)
      taken.insert(taken.end(), values.begin() + row * static_cast<int64_t>(width),
                   values.begin() + (row + 1) * static_cast<int64_t>(width));
    std::vector<std::byte> bytes(EncodedBytes(FloatTypeOf(info.dtype), taken.size()));
    Encode(FloatTypeOf(info.dtype), taken, bytes.data());
    std::vector<int64_t> shape = info.shape;
    shape[0] = std::ssize(rows);
    return {info.key, shape, info.dtype, [bytes](size_t offset, std::span<std::byte> out) {
              std::memcpy(out.data(), bytes.data() + offset, out.size());
            }};
  }

  static TensorFile Rows(const Block& block, const std::vector<int32_t>& rows) {
    TensorFile file{.name = block.name + ".safetensors", .tensors = {}};
    const auto copy = std::make_shared<std::vector<int32_t>>(rows);
    TensorSource numbers = SourceOf(block.name + ".rows", {std::ssize(rows)}, std::span(*copy));
    numbers.read = [copy, read = numbers.read](size_t offset, std::span<std::byte> out) {
      read(offset, out);
    };
    file.tensors.push_back(std::move(numbers));
    for (size_t i = 0; i < block.infos.size(); ++i)
      file.tensors.push_back(SourceOfRows(block.infos[i], block.values[i], rows));
    return file;
  }

  static TensorFile DenseFile(const Block& block) {
    std::vector<int32_t> all(static_cast<size_t>(kRows));
    std::iota(all.begin(), all.end(), 0);
    TensorFile file = Rows(block, all);
    file.tensors.erase(file.tensors.begin());
    return file;
  }

  static TensorFile SparseFile(const Block& block) {
    TensorFile file = Rows(block, block.trained);
    file.sparse = {.initial = kInitial, .tensors = block.infos, .rows = [&block] {
                     return std::span<const int32_t>(block.trained);
                   }};
    return file;
  }

  DType dtype_;
  std::vector<Block> blocks_;
};

SparseTable WithBlocks(DType dtype) {
  SparseTable table(dtype);
  table.AddBlock("embedding.C1.row_block_0_of_2.column_block_0_of_2", {0, 1, 17, 39});
  table.AddBlock("embedding.C1.row_block_0_of_2.column_block_1_of_2", {0, 1, 17, 39});
  table.AddBlock("embedding.C1.row_block_1_of_2.column_block_0_of_2", {});
  table.AddBlock("embedding.C1.row_block_1_of_2.column_block_1_of_2", {20});
  table.AddBlock("embedding.C2", {38});
  return table;
}

void ExpectEqualModels(const std::string& a, const std::string& b) {
  CheckpointReader x(a), y(b);
  ASSERT_EQ(x.keys(), y.keys());
  for (const std::string& key : x.keys()) {
    ASSERT_EQ(x.Info(key), y.Info(key));
    const size_t elements = static_cast<size_t>(NumElements(x.Info(key).shape));
    // Also from and to the middle of a row.
    for (size_t first : {size_t{0}, size_t{1}, elements / 2, elements - 1})
      for (const size_t size : {size_t{1}, (elements - first) / 2, elements - first}) {
        std::vector<float> of_x(size), of_y(size);
        x.Read(key, static_cast<int64_t>(first), of_x);
        y.Read(key, static_cast<int64_t>(first), of_y);
        ASSERT_EQ(of_x, of_y) << key << " from " << first;
        std::vector<std::byte> raw_x(size * BytesOf(x.Info(key).dtype)), raw_y(raw_x.size());
        x.ReadBytes(key, static_cast<int64_t>(first), raw_x);
        y.ReadBytes(key, static_cast<int64_t>(first), raw_y);
        ASSERT_EQ(raw_x, raw_y) << key << " from " << first;
      }
  }
}

class SparseCheckpoint : public ::testing::TestWithParam<DType> {
 protected:
  TemporaryDirectory dir_;
};

TEST_P(SparseCheckpoint, IsTheModelWithAllRows) {
  WithBlocks(GetParam()).Save(dir_ / "dense", dir_ / "sparse");
  ExpectEqualModels(dir_ / "dense", dir_ / "sparse");
  const CheckpointManifest dense = CheckpointManifest::Read(dir_ / "dense");
  const CheckpointManifest sparse = CheckpointManifest::Read(dir_ / "sparse");
  EXPECT_NE(dense.model_sha256, "");
  EXPECT_EQ(sparse.model_sha256, dense.model_sha256);
  EXPECT_NO_THROW(CheckpointReader(dir_ / "sparse").VerifyAll());
  EXPECT_THAT(ReadFile(dir_ / "dense/manifest.json"), HasSubstr("\"version\": 1"));
  EXPECT_THAT(ReadFile(dir_ / "sparse/manifest.json"), HasSubstr("\"version\": 2"));

  CheckpointReader reader(dir_ / "sparse");
  ExportModel(reader, dir_ / "sparse.safetensors");
  CheckpointReader of_dense(dir_ / "dense");
  ExportModel(of_dense, dir_ / "dense.safetensors");
  EXPECT_EQ(ReadFile(dir_ / "sparse.safetensors"), ReadFile(dir_ / "dense.safetensors"));
}

TEST_P(SparseCheckpoint, IsABase) {
  SparseTable table = WithBlocks(GetParam());
  table.Save(dir_ / "dense", dir_ / "sparse");
  SparseTable again = table;
  // A row that the base holds, and one that it does not.
  for (const int32_t row : {17, 5}) {
    const std::string on_dense = fmt::format("{}/on-dense-{}", dir_.path(), row);
    const std::string on_sparse = fmt::format("{}/on-sparse-{}", dir_.path(), row);
    table.SaveIncrement(dir_ / "dense", on_dense, row);
    again.SaveIncrement(dir_ / "sparse", on_sparse, row);
    ExpectEqualModels(on_dense, on_sparse);
    CheckpointReader reader(on_sparse);
    reader.VerifyAll();
    EXPECT_EQ(reader.ReplacedRows("embedding.C2.weight"), std::vector{row});
    const auto sparse = reader.FindSparseTable("embedding.C2.weight");
    ASSERT_TRUE(sparse);
    EXPECT_EQ(sparse->initial, SparseTable::kInitial);
    EXPECT_EQ(sparse->rows, std::vector{38});
    EXPECT_FALSE(CheckpointReader(on_dense).FindSparseTable("embedding.C2.weight"));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SparseCheckpoint,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& param) { return std::string(Name(param.param)); });

// The rows that no file holds differ, too, where the types round them otherwise.
TEST(SparseCheckpoints, OfTwoTypesAreComparedInEveryRow) {
  TemporaryDirectory dir;
  for (const DType dtype : {DType::kF32, DType::kBF16})
    WithBlocks(dtype).Save(dir / fmt::format("dense-{}", Name(dtype)),
                           dir / fmt::format("sparse-{}", Name(dtype)));
  const auto differing = [&](const std::string& kind) {
    CheckpointReader f32(dir / (kind + "-F32")), bf16(dir / (kind + "-BF16"));
    return DiffModels(f32, bf16).values_differing;
  };
  EXPECT_GT(differing("dense"), 100);
  EXPECT_EQ(differing("sparse"), differing("dense"));
}

// Writes a model of one sparse file that `edit` has changed; returns the error.
std::string ErrorAfter(const std::function<void(CheckpointFile&)>& edit,
                       CheckpointKind kind = CheckpointKind::kFull) {
  TemporaryDirectory dir;
  SparseTable table(DType::kF32);
  table.AddBlock("embedding.C1", {3, 9});
  return DataErrorOf([&] {
    CheckpointWriter writer(dir / "model");
    CheckpointManifest manifest{.kind = kind, .step = 7};
    if (kind == CheckpointKind::kIncremental) manifest.base = {"base", std::string(64, '0')};
    manifest.files.push_back(
        WriteCheckpointFile(writer.location(), table.SparseFileOfFirst(), {.hash_tensors = true}));
    edit(manifest.files[0]);
    writer.Commit(std::move(manifest));
    CheckpointReader(dir / "model").VerifyAll();
  });
}

TEST(SparseCheckpoints, AreChecked) {
  EXPECT_EQ(ErrorAfter([](CheckpointFile&) {}), "no error");
  // Values that would be other initial ones.
  EXPECT_THAT(ErrorAfter([](CheckpointFile& file) { file.sparse->initial.bound = 0.2f; }),
              HasSubstr("with its initial rows has the SHA-256"));
  EXPECT_THAT(ErrorAfter([](CheckpointFile& file) { file.sparse->initial.state = 0; }),
              HasSubstr("with its initial rows has the SHA-256"));
  EXPECT_THAT(ErrorAfter([](CheckpointFile& file) {
                file.sparse->initial.distribution = Distribution::kNormal;
              }),
              HasSubstr("with its initial rows has the SHA-256"));
  EXPECT_THAT(ErrorAfter([](CheckpointFile& file) { ++file.sparse->initial.key; }),
              HasSubstr("with its initial rows has the SHA-256"));
  EXPECT_THAT(ErrorAfter([](CheckpointFile& file) { file.sparse->initial.bound = INFINITY; }),
              HasSubstr("its 'bound' is 'inf', not a number"));
  EXPECT_THAT(ErrorAfter([](CheckpointFile& file) { file.sparse->tensors.pop_back(); }),
              HasSubstr("does not say how many rows 'embedding.C1.weight/rowwise_adagrad' has"));
  EXPECT_THAT(ErrorAfter([](CheckpointFile& file) { file.sparse->tensors[0].info.shape[1] = 4; }),
              HasSubstr("it lacks tensor 'embedding.C1.weight' F32 [2, 4]"));
  EXPECT_THAT(ErrorAfter([](CheckpointFile& file) { file.sparse->tensors[0].info.shape[0] = 9; }),
              HasSubstr("holds row 9"));
  EXPECT_THAT(ErrorAfter([](CheckpointFile& file) { file.sparse->tensors[0].info.key = "x"; }),
              HasSubstr("'x' F32 [40, 3] is not a tensor of a table"));
  EXPECT_THAT(ErrorAfter([](CheckpointFile& file) {
                file.sparse->tensors[0].info.key = "embedding.C1.row_block_0_of_2000000000.weight";
              }),
              HasSubstr("_of_2000000000.weight' F32 [40, 3] is not a tensor of a table"));
  EXPECT_THAT(ErrorAfter([](CheckpointFile& file) {
                for (CheckpointFile::Tensor& tensor : file.sparse->tensors) {
                  tensor.info.shape[0] = int64_t{1} << 31;
                  tensor.sha256 = "";
                }
              }),
              HasSubstr("'embedding.C1.weight' [2147483648, 3] has more rows than a block can"));
  EXPECT_THAT(ErrorAfter([](CheckpointFile&) {}, CheckpointKind::kIncremental),
              HasSubstr("it is incremental and has initial rows"));
}

}  // namespace
}  // namespace renzan
