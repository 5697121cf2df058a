#include "renzan/cluster/contract/stop_notice.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "renzan/base/file/file.h"

namespace renzan::cluster {
namespace {

// The pods of a gang may share the directory, and are stopped at the same time.
TEST(StopNotice, SurvivesOtherWritersInTheSameDirectory) {
  const TemporaryDirectory directory;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer)
    writers.emplace_back([&, writer] {
      for (int i = 0; i < 200; ++i) {
        EXPECT_NO_THROW(WriteStopNotice(directory.path(), {20, 1.8e9}, geteuid(), getegid(),
                                        std::to_string(writer)));
        EXPECT_EQ(ReadFile(directory / kStopNotice),
                  "{\"grace_seconds\": 20.000, \"deadline\": 1800000000.000}\n");
      }
    });
  for (std::thread& writer : writers) writer.join();
  RemoveStopNotice(directory.path());
  EXPECT_FALSE(FileExists(directory / kStopNotice));
}

}  // namespace
}  // namespace renzan::cluster
