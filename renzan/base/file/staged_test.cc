#include "renzan/base/file/staged.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <string>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan {
namespace {

using ::testing::HasSubstr;

template <typename Function>
std::string CannotCreate(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCantCreate) << error.what();
    return error.what();
  }
  return "(no error)";
}

TEST(StagedDirectory, AppearsAtomically) {
  TemporaryDirectory dir;
  {
    StagedDirectory staged(dir / "out");
    WriteFileAtomically(staged.staging() + "/x", "1");
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
  {
    StagedDirectory staged(dir / "out/");
    WriteFileAtomically(staged.staging() + "/x", "1");
    staged.Commit();
  }
  EXPECT_EQ(ReadFile(dir / "out/x"), "1");
  EXPECT_THAT(CannotCreate([&] { StagedDirectory again(dir / "out"); }),
              HasSubstr("already exists"));
  EXPECT_THAT(CannotCreate([&] { StagedDirectory nameless(""); }), HasSubstr("is empty"));
}

TEST(StagedDirectory, IsWrittenByOneAtATime) {
  TemporaryDirectory dir;
  StagedDirectory first(dir / "out");
  WriteFileAtomically(first.staging() + "/x", "1");
  EXPECT_THAT(CannotCreate([&] { StagedDirectory second(dir / "out"); }),
              HasSubstr("another process is writing " + dir / "out:"));
  first.Commit();
  EXPECT_EQ(ReadFile(dir / "out/x"), "1");
}

TEST(StagedDirectory, WhatAnInterruptedWriterLeftIsRemoved) {
  TemporaryDirectory dir;
  CreateDirectories(dir / ".out.partial/deep");
  WriteFileAtomically(dir / ".out.partial/deep/old", "old");
  StagedDirectory staged(dir / "out");
  EXPECT_TRUE(std::filesystem::is_empty(staged.staging()));
}

TEST(StagedDirectory, OneOfThoseThatBeginAtOnceWins) {
  TemporaryDirectory dir;
  for (int round = 0; round < 50; ++round) {
    const std::string path = dir / std::to_string(round);
    const auto write = [&](int i) {
      try {
        StagedDirectory staged(path);
        WriteFileAtomically(staged.staging() + "/x", std::to_string(i));
        staged.Commit();
        return 1;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kCantCreate) << error.what();
        return 0;
      }
    };
    std::vector<std::future<int>> writers;
    for (int i = 0; i < 4; ++i) writers.push_back(std::async(std::launch::async, write, i));
    int won = 0;
    for (std::future<int>& writer : writers) won += writer.get();
    EXPECT_EQ(won, 1);
    EXPECT_EQ(ReadFile(path + "/x").size(), 1u);
  }
}

// People know the name that they gave, not the one of what is staged.
TEST(StagedFile, ErrorsNameTheOutput) {
  TemporaryDirectory dir;
  WriteFileAtomically(dir / "file", "");
  std::filesystem::create_symlink(dir / "none/x", dir / "link");
  const auto error_of = [](const std::string& path) {
    const std::string early = CannotCreate([&] { CheckOutputFile(path); });
    EXPECT_EQ(CannotCreate([&] { StagedFile staged(path); }), early);
    return early;
  };
  EXPECT_EQ(error_of(dir / "none/x"), "cannot create " + dir / "none/x: " + dir / "none" +
                                          " does not exist: create this directory first");
  EXPECT_EQ(error_of(dir / "link"), "cannot create " + dir / "link: " + dir / "none" +
                                        " does not exist: create this directory first");
  EXPECT_EQ(error_of(dir / "file/x"),
            "cannot create " + dir / "file/x: " + dir / "file" + " is not a directory");
  const std::string name(250, 'x');  // too long for the staged name only
  EXPECT_EQ(CannotCreate([&] { StagedFile staged(dir / name); }),
            "cannot create " + dir / name + ": File name too long");
  EXPECT_EQ(CannotCreate([&] { StagedDirectory staged(dir / name); }),
            "cannot create " + dir / name + ": File name too long");
  StagedDirectory staged(dir / "out");
  EXPECT_EQ(CannotCreate([&] { FileWriter writer(staged.staging() + "/none/x"); }),
            "cannot create " + dir / "out/none/x: No such file or directory");
}

TEST(StagedFile, IsWrittenByOneAtATimeAndNeverReplacesAFile) {
  TemporaryDirectory dir;
  {
    StagedFile staged(dir / "x");
    FileWriter writer(staged.staging());
    writer.Write("half");
    EXPECT_THAT(CannotCreate([&] { StagedFile second(dir / "x"); }), HasSubstr("another process"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
  StagedFile staged(dir / "x");
  FileWriter writer(staged.staging());
  writer.Write("whole");
  writer.Close();
  staged.Commit();
  std::filesystem::create_symlink("x", dir / "link");
  for (const char* name : {"x", "link"})
    for (const std::string& error : {CannotCreate([&] { StagedFile again(dir / name); }),
                                     CannotCreate([&] { CheckOutputFile(dir / name); }),
                                     CannotCreate([&] { WriteOutputFile(dir / name, "other"); })})
      EXPECT_THAT(error, HasSubstr(std::string(name) + " already exists: choose another name"));
  EXPECT_EQ(ReadFile(dir / "x"), "whole");
}

TEST(StagedFile, DoesNotReplaceAFileThatAppearsMeanwhile) {
  TemporaryDirectory dir;
  {
    StagedFile staged(dir / "x");
    WriteFileAtomically(dir / "x", "theirs");
    EXPECT_THAT(CannotCreate([&] { staged.Commit(); }), HasSubstr("x already exists: choose"));
  }
  {
    StagedDirectory staged(dir / "y");
    WriteFileAtomically(staged.staging() + "/z", "ours");
    CreateDirectories(dir / "y");
    WriteFileAtomically(dir / "y/z", "theirs");
    EXPECT_THAT(CannotCreate([&] { staged.Commit(); }), HasSubstr("y already exists: choose"));
  }
  EXPECT_EQ(ReadFile(dir / "x"), "theirs");
  EXPECT_EQ(ReadFile(dir / "y/z"), "theirs");
  EXPECT_FALSE(FileExists(dir / ".x.partial"));
}

// /dev/stdout leads there, too, if standard output is a file.
TEST(StagedFile, DoesNotCutOffAnOpenFile) {
  TemporaryDirectory dir;
  WriteFileAtomically(dir / "x", "theirs");
  std::FILE* const open = std::fopen((dir / "x").c_str(), "a");
  ASSERT_NE(open, nullptr);
  const std::string name = "/dev/fd/" + std::to_string(::fileno(open));
  std::filesystem::create_symlink(name, dir / "link");
  for (const std::string& path : {name, dir / "link"})
    EXPECT_THAT(CannotCreate([&] { WriteOutputFile(path, "ours"); }),
                HasSubstr("cannot write " + path + ": it leads to a file that is there already"));
  std::fclose(open);
  EXPECT_EQ(ReadFile(dir / "x"), "theirs");
}

TEST(StagedFile, FollowsLinksAndLeavesOtherThingsAlone) {
  TemporaryDirectory dir;
  CreateDirectories(dir / "there");
  std::filesystem::create_symlink("there/x", dir / "link");
  WriteOutputFile(dir / "link", "1");
  EXPECT_TRUE(std::filesystem::is_symlink(dir / "link"));
  EXPECT_EQ(ReadFile(dir / "there/x"), "1");
  EXPECT_THAT(CannotCreate([&] { StagedFile file(dir / "there"); }), HasSubstr("is a directory"));
  EXPECT_THAT(CannotCreate([&] { StagedFile file(""); }), HasSubstr("is empty"));
  EXPECT_THAT(CannotCreate([&] { StagedFile file("/dev/null"); }), HasSubstr("device"));
}

TEST(WriteOutputFile, WritesToPipes) {
  TemporaryDirectory dir;
  const std::string pipe = dir / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::future<std::string> reader = std::async(std::launch::async, [&] {
    std::ifstream in(pipe);
    return std::string(std::istreambuf_iterator<char>(in), {});
  });
  CheckOutputFile(pipe);
  WriteOutputFile(pipe, "through");
  EXPECT_EQ(reader.get(), "through");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

}  // namespace
}  // namespace renzan
