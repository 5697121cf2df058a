// Queues of cluster.yaml: fair share and parents.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cluster/spec/cluster_config.h"
#include "renzan/cluster/spec/queue_rights.h"

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

TEST(QueueConfig, MayHaveAParent) {
  const ClusterConfig whole = ReadQueues(R"(
pools: {own: {nodes: 2, resources: {cpu: 8, gpu: 8}}}
queues:
  ads: {guaranteed: {gpu: 2}}
  research: {guaranteed: {cpu: 4}}
  speech: {parent: research, guaranteed: {gpu: 4}}
  vision: {parent: research, guaranteed: {gpu: 8, cpu: 2}}
)");
  for (const ClusterConfig& config :
       {whole, ReadQueues(PrintClusterConfig(whole, /*with_docs=*/true))}) {
    const Snapshot snapshot = MakeSnapshot(config, 0);
    const Queue &ads = snapshot.queues[0], &research = snapshot.queues[1];
    EXPECT_EQ(ads.parent, std::nullopt);
    EXPECT_EQ(research.parent, std::nullopt);
    EXPECT_EQ(snapshot.queues[2].parent, 1);
    EXPECT_EQ(snapshot.queues[3].parent, 1);
    EXPECT_EQ(research.guaranteed.gpu(), 12) << "that of its queues";
    EXPECT_EQ(research.guaranteed[kCpu], 4'000) << "more than that of its queues";
    EXPECT_TRUE(IsParent(snapshot.queues, research));
    EXPECT_FALSE(IsParent(snapshot.queues, ads));
    const auto why = [&](const Queue& queue) {
      return WhyQueueRefuses(queue, snapshot.queues, {.queue = queue.name}, {.user = "ann"});
    };
    EXPECT_EQ(why(research),
              "queue 'research' is a parent, and takes no jobs itself: use speech or vision");
    EXPECT_EQ(why(snapshot.queues[2]), "");
  }
  EXPECT_THAT(ErrorOfQueues("queues: {a: {parent: b}}"),
              HasSubstr("queue a: its parent b is no queue"));
  EXPECT_THAT(
      ErrorOfQueues("queues: {a: {parent: a}}"),
      HasSubstr("queue a: its parents come back to it (a, a): leave out the parent of one"));
  EXPECT_THAT(ErrorOfQueues("queues: {a: {parent: b}, b: {parent: c}, c: {parent: a}}"),
              HasSubstr("queue a: its parents come back to it (a, b, c, a)"));
  // Of a queue below a cycle, the cycle is what is wrong.
  EXPECT_THAT(ErrorOfQueues("queues: {a: {parent: b}, b: {parent: c}, c: {parent: b}}"),
              HasSubstr("queue b: its parents come back to it (b, c, b)"));
  for (const char* given : {"limit: {gpu: 1}", "fair_share: {half_life: 1d}", "max_priority: 3"})
    EXPECT_THAT(ErrorOfQueues(fmt::format("queues: {{a: {{parent: b}}, b: {{{}}}}}", given)),
                HasSubstr("queue b is a parent, and takes no jobs itself: give its limit"));
  EXPECT_THAT(
      ErrorOfQueues(
          "queues: {a: {parent: b, guaranteed: {cpu: 0.5}}, b: {guaranteed: {cpu: 0.25}}}"),
      HasSubstr("queue b: 250 thousandths of a core of cpu are guaranteed, but 500 to its queues"));
}

TEST(QueueConfig, ParentsMayHaveParents) {
  const ClusterConfig whole = ReadQueues(R"(
pools: {own: {nodes: 4, resources: {cpu: 8, gpu: 8}}}
queues:
  ads: {parent: company, guaranteed: {gpu: 2}}
  company: {}
  research: {parent: company, guaranteed: {gpu: 16}}
  vision: {parent: research, guaranteed: {gpu: 8, cpu: 2}}
)");
  for (const ClusterConfig& config :
       {whole, ReadQueues(PrintClusterConfig(whole, /*with_docs=*/true))}) {
    const Snapshot snapshot = MakeSnapshot(config, 0);
    EXPECT_EQ(snapshot.queues[0].parent, 1);
    EXPECT_EQ(snapshot.queues[2].parent, 1);
    EXPECT_EQ(snapshot.queues[3].parent, 2);
    EXPECT_EQ(snapshot.queues[1].guaranteed.gpu(), 18) << "what its queues and parents are";
    EXPECT_EQ(snapshot.queues[1].guaranteed[kCpu], 2'000);
    EXPECT_EQ(
        WhyQueueRefuses(snapshot.queues[1], snapshot.queues, {.queue = "company"}, {.user = "ann"}),
        "queue 'company' is a parent, and takes no jobs itself: use ads or vision");
  }
  EXPECT_THAT(ErrorOfQueues("queues: {a: {parent: b, guaranteed: {gpu: 4}}, b: {parent: c}, "
                            "c: {guaranteed: {gpu: 3}}}"),
              HasSubstr("queue c: 3 of gpu are guaranteed, but 4 to its queues together"));
  const auto chain = [](int queues) {
    std::string text = "queues: {q0: {}";
    for (int at = 1; at < queues; ++at) text += fmt::format(", q{}: {{parent: q{}}}", at, at - 1);
    return text + "}";
  };
  EXPECT_EQ(ErrorOfQueues(chain(Queue::kMostLevels)), "no error");
  EXPECT_THAT(ErrorOfQueues(chain(Queue::kMostLevels + 1)),
              HasSubstr("queue q8: q7 and the parents above it are more than 7: leave out"));
}

}  // namespace
}  // namespace renzan::cluster::spec
