#include "renzan/observe/run_manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const RunManifest kRun = {.build = "0.1.0-3f9a0c51d2be",
                          .config = "seed: 1\nname: \"ü\"\n",
                          .seed = std::numeric_limits<uint64_t>::max(),
                          .datasets = {{"data/train", "ab12"}},
                          .isa = "avx512",
                          .libraries = {{"libc", "glibc 2.36"}, {"Gloo", "2022"}},
                          .hosts = {"a", "a", "b"},
                          .started_unix_seconds = 1790000000.5,
                          .left_out_rows = 64,
                          .model_sha256 = "ff00",
                          .steps = 1234};

TEST(RunManifest, ReadsBackWhatWasWritten) {
  TemporaryDirectory dir;
  WriteRunManifest(dir / "manifest.json", kRun);
  const RunManifest back = ReadRunManifest(dir / "manifest.json");
  EXPECT_EQ(back.build, kRun.build);
  EXPECT_EQ(back.config, kRun.config);
  EXPECT_EQ(back.seed, kRun.seed);
  EXPECT_EQ(back.datasets, kRun.datasets);
  EXPECT_EQ(back.isa, kRun.isa);
  EXPECT_EQ(back.libraries, kRun.libraries);
  EXPECT_EQ(back.hosts, kRun.hosts);
  EXPECT_EQ(back.started_unix_seconds, kRun.started_unix_seconds);
  EXPECT_EQ(back.left_out_rows, kRun.left_out_rows);
  EXPECT_EQ(back.model_sha256, kRun.model_sha256);
  EXPECT_EQ(back.steps, kRun.steps);
  WriteRunManifest(dir / "manifest.json", {});
  EXPECT_EQ(ReadRunManifest(dir / "manifest.json").model_sha256, "");
}

TEST(RunManifest, RejectsOtherFiles) {
  TemporaryDirectory dir;
  for (const std::string text : {"", "{}", "[1]", R"({"format": "renzan-model", "version": 1})",
                                 R"({"format": "renzan-run", "version": 2})",
                                 R"({"format": "renzan-run", "version": 1, "seed": "x"})"}) {
    WriteFileAtomically(dir / "x", text);
    try {
      ReadRunManifest(dir / "x");
      FAIL() << "no error for " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kData);
    }
  }
}

TEST(RunManifest, NamesDifferencesThatMayChangeBits) {
  EXPECT_THAT(DifferencesThatChangeBits(kRun, kRun), IsEmpty());
  RunManifest spelled = kRun;
  spelled.datasets = {{"./data/train/", "ab12"}};
  EXPECT_THAT(DifferencesThatChangeBits(kRun, spelled), IsEmpty());
  RunManifest now = kRun;
  now.hosts = {"c"};
  now.started_unix_seconds = 0;
  now.model_sha256 = "";
  EXPECT_THAT(DifferencesThatChangeBits(kRun, now), IsEmpty());
  now.isa = "avx2";
  now.seed = 3;
  now.libraries["libc"] = "glibc 2.41";
  now.libraries.erase("Gloo");
  now.datasets["data/train"] = "cd34";
  EXPECT_THAT(
      DifferencesThatChangeBits(kRun, now),
      ElementsAre("seed was 18446744073709551615, is now 3",
                  "dataset data/train was ab12, is now cd34",
                  "instruction set was avx512, is now avx2", "library Gloo was 2022, is now absent",
                  "library libc was glibc 2.36, is now glibc 2.41"));
}

}  // namespace
}  // namespace renzan
