// Queues of cluster.yaml: fair share.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cluster/spec/cluster_config.h"

namespace renzan::cluster::spec {
namespace {

using ::testing::HasSubstr;

ClusterConfig ReadQueues(const std::string& yaml) {
  const TemporaryDirectory dir;
  WriteFileAtomically(dir / "cluster.yaml", yaml);
  return ReadClusterConfig(dir / "cluster.yaml", {});
}

// The message of the error for these queues, of two nodes.
std::string ErrorOfQueues(const std::string& line) {
  try {
    ReadQueues("pools: {own: {nodes: 2, resources: {cpu: 8, gpu: 4}}}\n" + line);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    return error.what();
  }
  return "no error";
}

TEST(QueueConfig, HasAHalfLifeForFairShare) {
  const ClusterConfig whole = ReadQueues(R"(
pools: {own: {}}
queues: {open: {}, off: {fair_share: {half_life: 0s}}, on: {fair_share: {half_life: 7d}}}
)");
  for (const ClusterConfig& config :
       {whole, ReadQueues(PrintClusterConfig(whole, /*with_docs=*/true))}) {
    const Snapshot snapshot = MakeSnapshot(config, 0);
    for (const Queue& queue : snapshot.queues)
      EXPECT_EQ(queue.fair_share, queue.name == "on"
                                      ? std::optional(FairShare{.half_life = 7 * 24 * kHour})
                                      : std::nullopt)
          << queue.name;
  }
  EXPECT_THAT(ErrorOfQueues("queues: {a: {fair_share: {half_life: week}}}"),
              HasSubstr("half_life"));
  EXPECT_THAT(ErrorOfQueues("queues: {a: {fair_share: {}}}"),
              HasSubstr("queues.a.fair_share is there, but empty: say after what time"));
}

}  // namespace
}  // namespace renzan::cluster::spec
