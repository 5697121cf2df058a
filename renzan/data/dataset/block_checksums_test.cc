#include "renzan/data/dataset/block_checksums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <random>

#include "renzan/base/file/file_system.h"
#include "renzan/base/sha256.h"
#include "renzan/base/xxhash.h"
#include "renzan/data/dataset/dataset_writer.h"
#include "renzan/data/testing.h"

namespace renzan {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::ExpectError;
using ::testing::HasSubstr;
using testing::ReadAll;

// The real file system, on a disk where one file has become unreadable.
class BadDisk : public FileSystem {
 public:
  explicit BadDisk(std::string path) : path_(std::move(path)) {}
  ssize_t ReadAt(int fd, const std::string& path, void* data, size_t bytes,
                 uint64_t offset) override {
    if (path != path_) return FileSystem::ReadAt(fd, path, data, bytes, offset);
    errno = EIO;
    return -1;
  }

 private:
  const std::string path_;
};

// Without fsync, which would be slow for hundreds of writes.
void Overwrite(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string RandomBytes(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// 40,000 rows: label.npy has 3 blocks, dense.npy 8 and ids.npy 5, the last ones short; two shards.
void WriteChecksummedDataset(const std::string& path) {
  std::mt19937 random(7);
  DatasetWriter writer(path, {"y", {"a", "b"}, {{"c", 1 << 30}, {"m", 1 << 30, true}}},
                       {.shard_rows = 30000});
  for (int row = 0; row < 40000; ++row) {
    const float dense[] = {static_cast<float>(random()), static_cast<float>(random())};
    const int64_t ids[] = {static_cast<int64_t>(random() >> 2)};
    const std::vector<int64_t> bags[] = {
        std::vector<int64_t>(random() % 3, static_cast<int64_t>(random() >> 2))};
    writer.Append(static_cast<float>(row % 2), dense, ids, bags);
  }
  writer.Finish();
}

TEST(DigestFile, OneChecksumForEachBlock) {
  TemporaryDirectory dir;
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{65536}, size_t{65537}, size_t{3'300'000}}) {
    const std::string bytes = RandomBytes(size, 1);
    WriteFileAtomically(dir / "f", bytes);
    const FileDigest digest = DigestFile(dir / "f");
    EXPECT_EQ(digest.sha256, Sha256Hex(bytes));
    ASSERT_EQ(digest.blocks.size(), (size + 65535) / 65536) << size;
    for (size_t block = 0; block < digest.blocks.size(); ++block) {
      const std::string part = bytes.substr(block * 65536, 65536);
      EXPECT_EQ(digest.blocks[block], Xxh3OfBlock(part.data(), part.size())) << block;
    }
  }
}

TEST(BlockVerifier, ReadsNeededBlocksOnlyOnce) {
  TemporaryDirectory dir;
  const std::string path = dir / "f";
  std::string bytes = RandomBytes(200'000, 2);
  WriteFileAtomically(path, bytes);
  const BlockVerifier verifier(path, bytes.size(), DigestFile(path).blocks);
  verifier.Need(0, 65536);
  bytes[10] ^= 1;
  bytes[150'000] ^= 1;
  WriteFileAtomically(path, bytes);
  verifier.Need(0, 65536);
  verifier.Need(131'072, 131'072);
  ExpectError(ErrorCode::kData,
              AllOf(HasSubstr(path), HasSubstr("bytes 131072 to 196607 are corrupt")),
              [&] { verifier.Need(131'071, 131'073); });
  verifier.Need(196'608, 200'000);
}

TEST(BlockVerifier, TellsATruncatedFileFromAFailingDisk) {
  TemporaryDirectory dir;
  const std::string path = dir / "f";
  WriteFileAtomically(path, RandomBytes(200'000, 3));
  const BlockVerifier verifier(path, 200'000, DigestFile(path).blocks);
  {
    BadDisk disk(path);
    const ScopedFileSystem scope(disk);
    ExpectError(ErrorCode::kIo, AllOf(HasSubstr(path), HasSubstr("Input/output error")),
                [&] { verifier.Need(0, 1); });
  }
  verifier.Need(0, 1);  // recovers once the disk does
  ASSERT_EQ(::truncate(path.c_str(), 100'000), 0);
  ExpectError(ErrorCode::kData, HasSubstr("truncated"), [&] { verifier.Need(99'999, 100'000); });
}

TEST(DatasetBlocks, AreVerifiedWhenFirstRead) {
  TemporaryDirectory dir;
  WriteChecksummedDataset(dir / "d");
  const std::string path = dir / "d/shard-00000/dense.npy";
  std::string bytes = ReadFile(path);
  bytes[3 * 65536] ^= 1;
  WriteFileAtomically(path, bytes);
  const Dataset dataset(dir / "d");
  Batch batch;
  // 128 bytes of header, then 8 bytes a row.
  const int64_t before[] = {0, 3 * 8192 - 17}, there[] = {3 * 8192 - 16};
  dataset.Read(before, &batch);
  ExpectError(ErrorCode::kData,
              AllOf(HasSubstr("dense.npy"), HasSubstr("bytes 196608 to 240127 are corrupt")),
              [&] { dataset.Read(there, &batch); });
  Dataset(dir / "d", {.verify_blocks = false}).Read(there, &batch);
}

TEST(DatasetBlocks, AFailingDiskIsNotCorruption) {
  TemporaryDirectory dir;
  WriteChecksummedDataset(dir / "d");
  BadDisk disk(dir / "d/shard-00001/ids.npy");
  const ScopedFileSystem scope(disk);
  ExpectError(ErrorCode::kIo, HasSubstr("shard-00001/ids.npy"),
              [&] { ReadAll(Dataset(dir / "d")); });
}

TEST(DatasetBlocks, CorruptionAtTwoHundredPlacesIsDetected) {
  TemporaryDirectory dir;
  WriteChecksummedDataset(dir / "d");
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(dir / "d"))
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  ASSERT_EQ(files.size(), 13u);  // dataset.yaml, and six in each shard

  std::mt19937_64 random(200);
  for (int corruptions = 0; corruptions < 200;) {
    const std::string& path = files[random() % files.size()];
    const std::string good = ReadFile(path);
    std::string bad = good;
    const size_t at = random() % good.size();
    switch (random() % 4) {
      case 0:  // a flipped bit
        bad[at] = static_cast<char>(bad[at] ^ (1 << random() % 8));
        break;
      case 1:  // a sector of zeros
        bad.replace(at, std::min<size_t>(512, bad.size() - at), 512, '\0');
        bad.resize(good.size());
        break;
      case 2:  // truncated
        bad.resize(at);
        break;
      case 3:  // two sectors swapped
        if (good.size() < 2048) continue;
        std::swap_ranges(bad.begin(), bad.begin() + 512, bad.begin() + 1024);
        break;
    }
    if (bad == good) continue;
    ++corruptions;
    Overwrite(path, bad);
    try {
      ReadAll(Dataset(dir / "d"));
      ADD_FAILURE() << "corruption " << corruptions << " at " << at << " of " << path
                    << " was not detected";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kData) << error.what();
    }
    Overwrite(path, good);
  }
  ReadAll(Dataset(dir / "d"));
}

TEST(DatasetBlocks, EveryByteOfTheManifestIsChecked) {
  TemporaryDirectory dir;
  {
    DatasetWriter writer(dir / "d", {"y", {"a"}, {{"c", 9}}});
    const float dense[] = {1};
    const int64_t ids[] = {2};
    writer.Append(1, dense, ids);
    writer.Finish();
  }
  const std::string path = dir / "d/dataset.yaml", good = ReadFile(path);
  for (size_t at = 0; at < good.size(); ++at) {
    for (const char wrong : {'1', '\n', '\xff'}) {
      std::string bad = good;
      bad[at] = wrong;
      if (bad == good) continue;
      Overwrite(path, bad);
      ExpectError(ErrorCode::kData, HasSubstr("dataset.yaml"), [&] { Dataset(dir / "d"); });
    }
    Overwrite(path, good.substr(0, at));
    ExpectError(ErrorCode::kData, HasSubstr("dataset.yaml"), [&] { Dataset(dir / "d"); });
  }
}

}  // namespace
}  // namespace renzan
