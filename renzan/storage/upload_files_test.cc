#include "renzan/storage/upload_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

// A directory of this machine plays the store.

namespace renzan {
namespace {

const auto kGoOn = [] { return false; };

TEST(UploadSource, IsNamedByItsPath) {
  const auto name_of = [](const std::string& path) { return UploadSourceOf(path).name; };
  EXPECT_EQ(name_of("/a/run"), "run");
  EXPECT_EQ(name_of("/a/run/"), "run");
  EXPECT_EQ(name_of("run/.."), std::filesystem::current_path().filename());
  EXPECT_EQ(name_of("/a/./run/model"), "run/model");
  EXPECT_EQ(name_of("/a/./run//"), "run");
  EXPECT_EQ(name_of("/a/./"), "");
  EXPECT_EQ(UploadSourceOf("/a/./run").path, "/a/./run");
}

TEST(UploadFiles, CopiesFilesAndDirectories) {
  const TemporaryDirectory folder;
  CreateDirectories(folder / "run/deep/er");
  CreateDirectories(folder / "to/run/deep/er");
  WriteFileAtomically(folder / "run/a", "one");
  WriteFileAtomically(folder / "run/deep/er/b", std::string(3'000'000, 'b'));
  WriteFileAtomically(folder / "run/deep/empty", "");
  WriteFileAtomically(folder / "to/run/a", "from before");
  WriteFileAtomically(folder / "secret", "s");
  std::filesystem::create_symlink(folder / "secret", folder / "run/link");
  std::filesystem::create_directory_symlink(folder / "run", folder / "run/loop");
  ASSERT_EQ(::mkfifo((folder / "run/pipe").c_str(), 0600), 0);
  WriteFileAtomically(folder / "log", "words");
  const std::vector<UploadSource> sources = {UploadSourceOf(folder / "run"),
                                             {folder / "log", "attempt-0.log"}};
  const Uploaded done = UploadFiles(sources, folder / "to", kGoOn);
  EXPECT_EQ(done.files, 4);
  EXPECT_EQ(done.bytes, 3'000'008);
  EXPECT_EQ(done.left_out, 3);
  EXPECT_EQ(ReadFile(folder / "to/run/a"), "one");
  EXPECT_EQ(ReadFile(folder / "to/run/deep/er/b").size(), 3'000'000u);
  EXPECT_EQ(ReadFile(folder / "to/run/deep/empty"), "");
  EXPECT_EQ(ReadFile(folder / "to/attempt-0.log"), "words");
  EXPECT_FALSE(FileExists(folder / "to/run/link"));
}

TEST(UploadFiles, WhatCannotBeReadIsAnError) {
  const TemporaryDirectory folder;
  WriteFileAtomically(folder / "a", "one");
  const std::vector<UploadSource> missing = {{folder / "none", "none"}};
  try {
    UploadFiles(missing, folder / "to", kGoOn);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNoInput);
    EXPECT_THAT(error.what(), testing::HasSubstr(folder / "none"));
  }
  CreateDirectories(folder / "to");
  const std::vector<UploadSource> there = {{folder / "a", "a"}};
  try {
    UploadFiles(there, folder / "to", [] { return true; });
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTempFail);
  }
}

}  // namespace
}  // namespace renzan
