// Corrupt checkpoints: for any bytes, reading gives an Error or the values that were written.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "renzan/base/philox.h"
#include "renzan/base/sha256.h"
#include "renzan/base/xxhash.h"
#include "renzan/checkpoint/reader.h"
#include "renzan/checkpoint/safetensors.h"
#include "renzan/checkpoint/testing.h"

namespace renzan {
namespace {

using ::testing::HasSubstr;

// A directory with a full checkpoint and two increments. Tests corrupt one file at a time.
class Corruption : public ::testing::Test {
 protected:
  Corruption() {
    TestModel model;
    model.SaveFull(dir_.path(), 10);
    for (const int32_t row : {0, 3, 9}) model.Update(row, 0.125f);
    model.SaveIncrement(dir_.path(), 20, 10, {0, 3, 9});
    model.SaveIncrement(dir_.path(), 30, 10, {0, 3, 9}, true);
    for (const int64_t step : {10, 20, 30}) expected_[step] = ReadEverything(step, true);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_.path()))
      if (entry.is_regular_file()) files_.push_back(entry.path().string());
  }

  std::string At(int64_t step) const { return dir_ / CheckpointName(step); }

  // All values as text, bit by bit.
  std::string ReadEverything(int64_t step, bool verify) const {
    CheckpointReader reader(At(step), verify);
    std::string all = fmt::format("{} {}\n", reader.step(), reader.config());
    for (const std::string& key : reader.keys()) {
      all += key + ShapeText(reader.Info(key).shape);
      const size_t size = static_cast<size_t>(NumElements(reader.Info(key).shape));
      if (IsModelTensor(key)) {
        std::vector<float> values(size);
        reader.Read(key, 0, values);
        all.append(reinterpret_cast<const char*>(values.data()), size * sizeof(float));
      } else {
        all += fmt::format("{}", fmt::join(reader.ReadI64(key), " "));
      }
    }
    return all;
  }

  // Without fsync, because thousands of files are written.
  static void Write(const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
  }

  // Expects an Error from every checkpoint that uses the file `path`, or unchanged values.
  void Check(const std::string& path, const std::string& what) {
    for (const auto& [step, expected] : expected_) {
      if (!path.starts_with(At(step)) && !path.starts_with(At(10))) continue;
      ++checked_;
      try {
        EXPECT_EQ(ReadEverything(step, true), expected) << path << " " << what;
      } catch (const Error& error) {
        ++rejected_;
        EXPECT_TRUE(error.code() == ErrorCode::kData || error.code() == ErrorCode::kNoInput)
            << path << " " << what << ": " << error.what();
        EXPECT_THAT(error.what(), HasSubstr(dir_.path()));
      }
    }
  }

  TemporaryDirectory dir_;
  std::vector<std::string> files_;
  std::map<int64_t, std::string> expected_;
  size_t checked_ = 0, rejected_ = 0;
};

TEST_F(Corruption, RejectsEveryFileTruncatedAnywhere) {
  ASSERT_EQ(files_.size(), 13u);
  for (const std::string& path : files_) {
    const std::string content = ReadFile(path);
    const size_t stride = 1 + content.size() / 60;
    // The last byte of a manifest is an insignificant newline.
    for (size_t size = 0; size + 1 < content.size(); size += stride) {
      Write(path, content.substr(0, size));
      const size_t rejected = rejected_;
      Check(path, fmt::format("cut to {}", size));
      EXPECT_GT(rejected_, rejected) << path << " " << size;
    }
    Write(path, content + "x");
    const size_t rejected = rejected_;
    Check(path, "with a byte more");
    EXPECT_GT(rejected_, rejected) << path;
    Write(path, content);
  }
}

TEST_F(Corruption, RejectsEveryFlippedBitUnlessHarmless) {
  uint64_t draw = 0;
  size_t harmless = 0, flips = 0;
  for (const std::string& path : files_) {
    const std::string content = ReadFile(path);
    const bool manifest = path.ends_with("manifest.json");
    const size_t times = manifest ? content.size() : 200;
    for (size_t i = 0; i < times; ++i) {
      const Philox::Block random = Philox::Draw(5, draw++);
      const size_t at = manifest ? i : random[0] % content.size();
      std::string corrupt = content;
      corrupt[at] = static_cast<char>(corrupt[at] ^ (1 << (random[1] % 8)));
      Write(path, corrupt);
      const size_t rejected = rejected_;
      Check(path, fmt::format("flipped at {}", at));
      harmless += rejected_ == rejected ? 1 : 0;
      ++flips;
    }
    Write(path, content);
  }
  // Only changes of white space to other white space are harmless.
  EXPECT_LE(harmless, flips / 1000);
}

TEST_F(Corruption, RejectsAMissingFile) {
  for (const std::string& path : files_) {
    const std::string content = ReadFile(path);
    std::filesystem::remove(path);
    Check(path, "is missing");
    std::filesystem::create_directory(path);
    Check(path, "is a directory");
    std::filesystem::remove(path);
    Write(path, content);
  }
  EXPECT_EQ(rejected_, checked_);
  Check(files_[0], "is back");
  EXPECT_LT(rejected_, checked_);
}

// Corrupt files with matching checksums in the manifest, as a faulty or malicious writer would
// leave. Nothing may be read outside the files.
TEST_F(Corruption, NeverReadsOutsideFilesWithMatchingChecksums) {
  const std::string path = At(20) + "/table.C1.safetensors";
  const std::string content = ReadFile(path);
  const CheckpointManifest valid = CheckpointManifest::Read(At(20));
  for (uint64_t i = 0; i < 2000; ++i) {
    std::string corrupt = content;
    const Philox::Block random = Philox::Draw(6, i);
    for (uint32_t flip = 0; flip <= random[3] % 3; ++flip)
      corrupt[random[flip] % corrupt.size()] ^= static_cast<char>(1 << (random[flip] >> 29));
    Write(path, corrupt);
    CheckpointManifest manifest = valid;
    for (CheckpointFile& file : manifest.files) {
      if (file.name != "table.C1.safetensors") continue;
      Xxh128 hash;
      hash.Update(corrupt.data(), corrupt.size());
      file.xxh128 = hash.HexDigest();
    }
    Write(At(20) + "/manifest.json", manifest.ToJson());
    ++checked_;
    try {
      EXPECT_EQ(ReadEverything(20, true).size(), expected_[20].size());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kData) << error.what();
      ++rejected_;
    }
  }
  // Flips in values are accepted here; those in the header and in row numbers mostly are not.
  EXPECT_GT(rejected_, 1000u);
  EXPECT_GT(checked_ - rejected_, 100u);
}

TEST(CorruptModel, IsNamedWithBothChecksums) {
  TemporaryDirectory dir;
  TestModel().Save(dir / "m");
  const std::string file = dir / "m/table.C1.safetensors";
  EditFile(file, [](std::string& content) { content.back() ^= 1; });
  EXPECT_THAT(DataErrorOf([&] { CheckpointReader(dir / "m").VerifyAll(); }),
              testing::AllOf(HasSubstr(file), HasSubstr("its XXH128 is")));
  std::vector<float> value(1);
  CheckpointReader model(dir / "m");
  EXPECT_EQ(DataErrorOf([&] { model.Read("bottom.0.weight", 0, value); }), "no error");
  EXPECT_THAT(DataErrorOf([&] { model.Read("embedding.C1.weight", 0, value); }),
              AllOf(HasSubstr("is corrupt"), HasSubstr("use another checkpoint of its run")));
  EXPECT_EQ(DataErrorOf(
                [&] { CheckpointReader(dir / "m", false).Read("embedding.C1.weight", 0, value); }),
            "no error");
}

// The checksum of each tensor, when that of the file matches.
TEST(CorruptModel, TensorsAreVerifiedAgainstTheirSha256) {
  TemporaryDirectory dir;
  const std::string sum = TestModel().Save(dir / "m");
  CheckpointManifest manifest = CheckpointManifest::Read(dir / "m");
  for (CheckpointFile& file : manifest.files) file.tensors[0].sha256 = std::string(64, 'a');
  manifest.model_sha256 = ModelSha256(manifest.files, manifest.step);
  WriteFileAtomically(dir / "m/manifest.json", manifest.ToJson());
  EXPECT_THAT(DataErrorOf([&] { CheckpointReader(dir / "m").VerifyAll(); }),
              HasSubstr("tensor 'bottom.0.weight' has the SHA-256"));
}

}  // namespace
}  // namespace renzan
