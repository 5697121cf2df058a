#include "renzan/observe/metrics_log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan {
namespace {

TEST(MetricsLog, WritesOneObjectPerLineWithoutBuffering) {
  TemporaryDirectory dir;
  MetricsLog log(dir / "metrics.jsonl", {});
  log.Add({100, 1790000000.25, {{"train/loss", 0.5}, {"train/auc", NAN}}});
  log.Add({200, 1790000001, {{"train/loss", 0.1}}});
  EXPECT_EQ(ReadFile(dir / "metrics.jsonl"),
            "{\"step\":100,\"time\":1790000000.25,\"train/loss\":0.5,\"train/auc\":null}\n"
            "{\"step\":200,\"time\":1790000001.0,\"train/loss\":0.1}\n");
}

TEST(MetricsLog, AResumedRunDropsLinesItWillLogAgain) {
  TemporaryDirectory dir;
  const std::string path = dir / "metrics.jsonl";
  {
    MetricsLog log(path, {});
    for (const int64_t step : {100, 200, 300}) log.Add({step, 1, {}});
  }
  AppendFile(path).Append("{\"step\":400,\"ti");
  { MetricsLog log(path, {250, 250}); }
  EXPECT_EQ(ReadFile(path), "{\"step\":100,\"time\":1.0}\n{\"step\":200,\"time\":1.0}\n");
  MetricsLog log(path, {200, 200});
  log.Add({200, 2, {}});
  EXPECT_EQ(ReadFile(path), "{\"step\":100,\"time\":1.0}\n{\"step\":200,\"time\":2.0}\n");
}

TEST(MetricsLog, DropsAnEvaluationThatWillBeRepeated) {
  TemporaryDirectory dir;
  const std::string path = dir / "metrics.jsonl";
  {
    MetricsLog log(path, {});
    log.Add({100, 1, {{"train/loss", 1}}});
    log.Add({100, 1, {{"eval/loss", 1}}});
  }
  { MetricsLog log(path, {101, 101}); }
  EXPECT_NE(ReadFile(path).find("eval/loss"), std::string::npos);
  { MetricsLog log(path, {101, 100}); }
  EXPECT_EQ(ReadFile(path), "{\"step\":100,\"time\":1.0,\"train/loss\":1.0}\n");
}

TEST(MetricsLog, LeavesAForeignFileUnchanged) {
  TemporaryDirectory dir;
  WriteFileAtomically(dir / "notes", "{\"step\": 1}\nmy notes\n");
  try {
    MetricsLog log(dir / "notes", {1, 1});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kData);
    EXPECT_NE(std::string(error.what()).find(dir / "notes:2:"), std::string::npos);
  }
  EXPECT_EQ(ReadFile(dir / "notes"), "{\"step\": 1}\nmy notes\n");
}

TEST(MetricsLog, AFullDiskIsAnIoError) {
  if (!FileExists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  AppendFile file("/dev/full");
  try {
    file.Append("x");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
  }
}

}  // namespace
}  // namespace renzan
