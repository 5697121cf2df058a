#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/philox.h"
#include "renzan/base/sha256.h"
#include "renzan/base/thread_pool.h"

namespace renzan {
namespace {

TEST(ErrorDeathTest, AFailedCheckExitsWithStatus70) {
  EXPECT_EXIT(CHECK(1 + 1 == 3), testing::ExitedWithCode(70),
              "internal error: .*base_test.cc:[0-9]+: CHECK\\(1 \\+ 1 == 3\\) failed");
  EXPECT_EXIT(CHECK_MSG(false, "{} rows", 5), testing::ExitedWithCode(70), "failed: 5 rows");
}

// Known answers of Random123's kat_vectors file.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(Philox::Draw(0, 0, 0), (Philox::Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox::Draw(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}),
            (Philox::Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Philox, NormalHasUnitVariance) {
  double sum = 0, squares = 0;
  const int n = 100000;
  for (int i = 0; i < n; ++i) {
    const Philox::Block block = Philox::Draw(7, static_cast<uint64_t>(i));
    const double x = Philox::Normal(block[0], block[1]);
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / n, 0, 0.02);
  EXPECT_NEAR(squares / n, 1, 0.03);
}

TEST(Sha256, KnownAnswer) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(File, WriterLeavesNoFileWithoutClose) {
  TemporaryDirectory dir;
  {
    FileWriter writer(dir / "half");
    writer.Write("abc");
  }
  EXPECT_FALSE(FileExists(dir / "half"));
  FileWriter writer(dir / "whole");
  writer.Write("0bc");
  writer.WriteAt(0, "a", 1);
  writer.Close();
  EXPECT_EQ(ReadFile(dir / "whole"), "abc");
  EXPECT_EQ(Sha256OfFile(dir / "whole"), Sha256Hex("abc"));
}

TEST(File, FullDiskIsAnIoError) {
  if (!FileExists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  FileWriter writer("/dev/full");
  writer.Write("abc");
  try {
    writer.Close();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_NE(std::string(error.what()).find("No space left"), std::string::npos);
  }
}

TEST(File, NamesAreCutToWhatFitsAndStayDifferent) {
  const std::string long_name = EscapeName(std::string(40, 'a') + "/");
  EXPECT_EQ(long_name, std::string(40, 'a') + "%2F");
  EXPECT_EQ(BoundedFileName(long_name, 43), long_name);
  // No part of "%2F" is left over.
  for (size_t bytes = 17; bytes < 43; ++bytes) {
    const std::string cut = BoundedFileName(long_name, bytes);
    EXPECT_LE(cut.size(), bytes);
    EXPECT_EQ(cut, long_name.substr(0, bytes - 17) + "~" + Sha256Hex(long_name).substr(0, 16));
    EXPECT_NE(cut, BoundedFileName(EscapeName(std::string(40, 'a') + "%"), bytes));
  }
  EXPECT_EQ(BoundedFileName("%41%42%43%44%45%46%47", 20),
            "%41~" + Sha256Hex("%41%42%43%44%45%46%47").substr(0, 16));
  EXPECT_EQ(BoundedFileName("%41%42%43%44%45%46%47", 19),
            "~" + Sha256Hex("%41%42%43%44%45%46%47").substr(0, 16));
}

TEST(File, MissingFileNamesThePath) {
  try {
    ReadFile("/no/such/file");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNoInput);
    EXPECT_NE(std::string(error.what()).find("/no/such/file"), std::string::npos);
  }
}

TEST(ThreadPool, VisitsEveryIndexOnce) {
  for (int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    for (size_t n : {size_t{0}, size_t{1}, size_t{4}, size_t{1000}}) {
      std::vector<std::atomic<int>> seen(n);
      for (int repeat = 0; repeat < 50; ++repeat)
        pool.ParallelRanges(n, [&](int, size_t begin, size_t end) {
          for (size_t i = begin; i < end; ++i) seen[i]++;
        });
      pool.ParallelTasks(n, [&](int, size_t i) { seen[i]++; });
      for (size_t i = 0; i < n; ++i) EXPECT_EQ(seen[i], 51);
    }
  }
}

TEST(ThreadPool, PropagatesExceptions) {
  ThreadPool pool(3);
  EXPECT_THROW(pool.RunOnAll([](int thread) {
    if (thread == 2) Fail(ErrorCode::kData, "from a member");
  }),
               Error);
  int calls = 0;
  pool.ParallelRanges(1, [&](int, size_t, size_t) { ++calls; });
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace renzan
