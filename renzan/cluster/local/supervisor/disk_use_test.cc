#include "renzan/cluster/local/supervisor/disk_use.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "renzan/base/file/file.h"

namespace renzan::cluster::local {
namespace {

int64_t BytesIn(const std::string& directory) {
  DiskUse use(directory);
  while (!use.Advance(3)) {
  }
  return use.bytes();
}

TEST(DiskUse, CountsAllFilesOnce) {
  const TemporaryDirectory directory;
  const std::string root = directory / "jobs";
  CreateDirectories(root + "/1/run/deep/deeper");
  const int64_t empty = BytesIn(root);
  for (const char* name : {"/a", "/1/b", "/1/run/deep/deeper/c"})
    std::ofstream(root + name) << std::string(1 << 20, 'x');
  const int64_t before = BytesIn(root);
  EXPECT_GE(before - empty, 3 << 20);
  EXPECT_LT(before - empty, 4 << 20);
  // Another name, a link out of it, and a file without blocks take no space.
  std::ofstream(directory / "outside") << std::string(1 << 20, 'x');
  ASSERT_EQ(::link((root + "/a").c_str(), (root + "/1/again").c_str()), 0);
  ASSERT_EQ(::symlink((directory / "outside").c_str(), (root + "/1/link").c_str()), 0);
  ASSERT_EQ(::symlink(directory.path().c_str(), (root + "/1/up").c_str()), 0);
  { std::ofstream sparse(root + "/sparse"); }
  std::filesystem::resize_file(root + "/sparse", 1 << 30);
  EXPECT_LT(BytesIn(root) - before, 1 << 16);
}

// Between two looks, the owner of a directory puts a link in its place.
TEST(DiskUse, FollowsNoLinkThatAppearsMeanwhile) {
  const TemporaryDirectory directory;
  const std::string root = directory / "jobs";
  CreateDirectories(root + "/a/b");
  CreateDirectories(directory / "elsewhere/b");
  std::ofstream(directory / "elsewhere/b/large") << std::string(1 << 20, 'x');
  DiskUse use(root);
  // The root's ".", ".." and "a", its end; and then those of a.
  ASSERT_FALSE(use.Advance(4 + 3));
  std::filesystem::rename(root + "/a", root + "/moved");
  std::filesystem::create_directory_symlink(directory / "elsewhere", root + "/a");
  while (!use.Advance(1)) {
  }
  EXPECT_LT(use.bytes(), 1 << 20);
}

TEST(DiskUse, StopsInBetween) {
  const TemporaryDirectory directory;
  for (int i = 0; i < 20; ++i) std::ofstream(directory / std::to_string(i)) << "x";
  DiskUse use(directory.path());
  EXPECT_FALSE(use.Advance(10));
  const int64_t part = use.bytes();
  while (!use.Advance(10)) {
  }
  EXPECT_GT(use.bytes(), part);
  DiskUse missing(directory / "missing");
  EXPECT_TRUE(missing.Advance(1));
  EXPECT_EQ(missing.bytes(), 0);
}

}  // namespace
}  // namespace renzan::cluster::local
