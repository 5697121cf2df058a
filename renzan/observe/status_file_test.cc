#include "renzan/observe/status_file.h"

#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "renzan/base/file/file.h"

namespace renzan {
namespace {

using Json = nlohmann::json;

TEST(StatusFile, HoldsTheFieldsOfTheLaunchContract) {
  TemporaryDirectory dir;
  WriteStatusFile(dir / "status.json", {.state = "running",
                                        .step = 100,
                                        .steps = 1000,
                                        .samples_per_second = 5e4,
                                        .eta_seconds = 18,
                                        .last_checkpoint = RunStatus::Checkpoint{90, 1790000000},
                                        .working_since_unix_seconds = 1789999000,
                                        .updated_unix_seconds = 1790000005});
  EXPECT_EQ(Json::parse(ReadFile(dir / "status.json")),
            Json::parse(R"({"state": "running", "step": 100, "steps": 1000,
                            "samples_per_second": 50000.0, "eta_seconds": 18.0,
                            "last_checkpoint": {"step": 90, "time": 1790000000.0},
                            "working_since": 1789999000.0,
                            "updated": 1790000005.0})"));
  WriteStatusFile(dir / "status.json", {});
  const Json status = Json::parse(ReadFile(dir / "status.json"));
  EXPECT_EQ(status["state"], "starting");
  EXPECT_TRUE(status["last_checkpoint"].is_null());
  EXPECT_TRUE(status["eta_seconds"].is_null());
}

TEST(StatusFile, TellsARunWithoutCheckpointsFromOneThatLostThem) {
  TemporaryDirectory dir;
  const std::string path = dir / "status.json";
  EXPECT_FALSE(HasNoCheckpointYet(path));
  WriteFileAtomically(path, "{\"state\": ");
  EXPECT_FALSE(HasNoCheckpointYet(path));
  WriteFileAtomically(path, "{}");
  EXPECT_FALSE(HasNoCheckpointYet(path));
  WriteStatusFile(path, {.state = "stopped"});
  EXPECT_TRUE(HasNoCheckpointYet(path));
  WriteStatusFile(path, {.state = "done"});
  EXPECT_FALSE(HasNoCheckpointYet(path));
  WriteStatusFile(path, {.state = "stopped", .last_checkpoint = RunStatus::Checkpoint{90, 179}});
  EXPECT_FALSE(HasNoCheckpointYet(path));
}

TEST(StatusFile, AReaderNeverSeesAPartialFile) {
  TemporaryDirectory dir;
  const std::string path = dir / "status.json";
  WriteStatusFile(path, {});
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (int64_t step = 0; step < 200; ++step) WriteStatusFile(path, {.step = step});
    done = true;
  });
  int64_t last = 0;
  while (!done) {
    const Json status = Json::parse(ReadFile(path), nullptr, false);
    ASSERT_FALSE(status.is_discarded());
    EXPECT_GE(status["step"].get<int64_t>(), last);
    last = status["step"].get<int64_t>();
  }
  writer.join();
}

}  // namespace
}  // namespace renzan
