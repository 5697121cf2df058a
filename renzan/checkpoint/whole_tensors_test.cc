#include "renzan/checkpoint/whole_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "renzan/checkpoint/block_key.h"
#include "renzan/checkpoint/export.h"
#include "renzan/checkpoint/model_diff.h"
#include "renzan/checkpoint/safetensors.h"
#include "renzan/checkpoint/testing.h"

namespace renzan {
namespace {

TEST(BlockKey, ReadsWhatItWrites) {
  for (const BlockKey& block : {BlockKey{.table = "C1"},
                                {.table = "C1", .row_block = 3, .row_blocks = 8},
                                {.table = "C%2E1", .column_block = 1, .column_blocks = 2},
                                {"x", 1, 2, 0, 4}}) {
    const auto parts = ParseTableTensorKey(block.Key() + ".weight/adagrad");
    ASSERT_TRUE(parts) << block.Key();
    EXPECT_EQ(parts->block, block);
    EXPECT_EQ(parts->rest, ".weight/adagrad");
  }
  EXPECT_EQ((BlockKey{"C1", 3, 8, 0, 2}.Key()),
            "embedding.C1.row_block_3_of_8.column_block_0_of_2");
  EXPECT_FALSE(ParseTableTensorKey("embedding.C1.rows"));
  EXPECT_FALSE(ParseTableTensorKey("bottom.0.weight"));
}

// With the largest numbers, the longest ending and the prefix of a file in a store.
TEST(BlockKey, NamesOfFilesAreBounded) {
  EXPECT_EQ((BlockKey{"C1", 3, 8}.FileStem()), "table.C1.row_block_3_of_8");
  const int most = std::numeric_limits<int>::max();
  const std::string name(128, 'a');
  EXPECT_EQ((BlockKey{name, 1, 2}.FileStem()), "table." + name + ".row_block_1_of_2");
  const std::string stem = BlockKey{name + "a", most - 1, most, most - 1, most}.FileStem();
  EXPECT_LE(stem.size() + std::string(".q8.safetensors").size() + 17, 255u);
  EXPECT_NE(stem, (BlockKey{name + "b", most - 1, most, most - 1, most}.FileStem()));
}

// A table [rows, columns] whose value at (r, c) is 100 r + c, saved in blocks.
struct SavedBlocks {
  TemporaryDirectory dir;
  std::vector<std::vector<float>> values;  // of each tensor
  std::vector<TensorSource> tensors;

  SavedBlocks(int rows, int row_blocks, int columns, int column_blocks) {
    values.reserve(100);
    for (int r = 0; r < row_blocks; ++r)
      for (int c = 0; c < column_blocks; ++c) {
        const BlockKey key{"C1", r, row_blocks, c, column_blocks};
        const int width = columns / column_blocks;
        std::vector<float> block, state;
        for (int row = r; row < rows; row += row_blocks) {
          for (int column = c * width; column < (c + 1) * width; ++column)
            block.push_back(static_cast<float>(100 * row + column));
          state.push_back(static_cast<float>(row));
        }
        const int64_t n = std::ssize(state);
        values.push_back(std::move(block));
        tensors.push_back(SourceOf(key.Key() + ".weight", {n, width}, values.back()));
        values.push_back(std::move(state));
        tensors.push_back(SourceOf(key.Key() + ".weight/rowwise_adagrad", {n}, values.back()));
      }
  }

  CheckpointReader Read() {
    CheckpointWriter writer(dir / "m");
    CheckpointManifest manifest{.step = 1};
    manifest.files = {WriteCheckpointFile(writer.location(), "x", tensors, {})};
    writer.Commit(manifest);
    return CheckpointReader(dir / "m");
  }
};

TEST(Export, PutsTheBlocksOfATableTogether) {
  for (const auto& [rows, row_blocks] : {std::pair{8, 4}, {11, 4}, {5, 1}, {40000, 8}})
    for (const int column_blocks : {1, 3}) {
      SavedBlocks saved(rows, row_blocks, 6, column_blocks);
      CheckpointReader reader = saved.Read();
      EXPECT_EQ(ExportModel(reader, saved.dir / "whole"), 2);
      const SafetensorsReader file(saved.dir / "whole");
      const auto* table = file.Find("embedding.C1.weight");
      ASSERT_NE(table, nullptr);
      EXPECT_THAT(table->info.shape, testing::ElementsAre(rows, 6));
      const auto* state = file.Find("embedding.C1.weight/rowwise_adagrad");
      ASSERT_NE(state, nullptr);
      EXPECT_THAT(state->info.shape, testing::ElementsAre(rows));
      for (int row = 0; row < rows; ++row) {
        const size_t r = static_cast<size_t>(row);
        ASSERT_EQ(state->f32()[r], static_cast<float>(row));
        for (size_t column = 0; column < 6; ++column)
          ASSERT_EQ(table->f32()[r * 6 + column],
                    static_cast<float>(100 * row) + static_cast<float>(column));
      }
    }
}

TEST(WholeTensors, RefuseBlocksThatDoNotFit) {
  const auto expect = [](SavedBlocks& saved, const char* text) {
    CheckpointReader reader = saved.Read();
    try {
      WholeTensorsOf(reader);
      ADD_FAILURE() << "accepted; expected " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kData);
      EXPECT_THAT(error.what(), testing::HasSubstr(text));
    }
  };
  SavedBlocks missing(8, 4, 6, 1);
  missing.tensors.erase(missing.tensors.begin() + 2);
  expect(missing, "row block 1 is missing");
  SavedBlocks rows(8, 4, 6, 1);
  rows.tensors[0].shape = {3, 4};
  expect(rows, "row block");
  SavedBlocks other(8, 4, 6, 1);
  other.tensors[0].key = "embedding.C1.row_block_6_of_8.weight";
  expect(other, "does not fit the other blocks");
}

// A table [2, 3] in blocks of one column, and a state with separate values per column. Earlier
// builds saved the state as [2].
void SaveColumns(const std::string& path, bool of_earlier_build) {
  const std::vector<std::vector<float>> columns = {{0, 100}, {1, 101}, {2, 102}};
  std::vector<TensorSource> tensors;
  for (int c = 0; c < 3; ++c) {
    const std::string key = BlockKey{"C1", 0, 1, c, 3}.Key() + ".weight";
    const std::vector<float>& column = columns[static_cast<size_t>(c)];
    tensors.push_back(SourceOf(key, {2, 1}, column));
    tensors.push_back(
        SourceOf(key + "/adagrad",
                 of_earlier_build ? std::vector<int64_t>{2} : std::vector<int64_t>{2, 1}, column));
  }
  CheckpointWriter writer(path);
  CheckpointManifest manifest{.step = 1};
  manifest.files = {WriteCheckpointFile(writer.location(), "x", tensors, {.hash_tensors = true})};
  writer.Commit(manifest);
}

TEST(Export, KeepsTheStateOfEveryColumn) {
  TemporaryDirectory dir;
  for (const bool of_earlier_build : {false, true}) {
    const std::string name = of_earlier_build ? "earlier" : "now";
    SaveColumns(dir / name, of_earlier_build);
    CheckpointReader reader(dir / name);
    EXPECT_EQ(ExportModel(reader, dir / (name + ".safetensors")), 2);
    const SafetensorsReader file(dir / (name + ".safetensors"));
    for (const char* key : {"embedding.C1.weight", "embedding.C1.weight/adagrad"}) {
      const auto* tensor = file.Find(key);
      ASSERT_NE(tensor, nullptr);
      EXPECT_THAT(tensor->info.shape, testing::ElementsAre(2, 3)) << name << " " << key;
      EXPECT_THAT(tensor->f32(), testing::ElementsAre(0, 1, 2, 100, 101, 102)) << name;
    }
  }
  CheckpointReader now(dir / "now"), earlier(dir / "earlier");
  EXPECT_TRUE(DiffModels(now, earlier).same());
}

}  // namespace
}  // namespace renzan
