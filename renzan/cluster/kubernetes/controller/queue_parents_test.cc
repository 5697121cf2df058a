// Parents of Queues.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/cluster/kubernetes/controller/queue_world_testing.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct ParentWorld : QueueWorld {
  void AddQueue(const char* name, int guaranteed, const char* parent = nullptr) {
    Json spec = Gpus(guaranteed);
    if (parent != nullptr) spec["parent"] = parent;
    cluster.Apply(Queues(), name, spec);
  }
  const Queue& Find(const std::string& name) const {
    for (const Queue& queue : leader->controller.snapshot().queues)
      if (queue.name == name && !queue.removed) return queue;
    throw std::runtime_error("there is no queue " + name);
  }
  // "" if it has none.
  std::string ParentOf(const std::string& name) const {
    const auto parent = Find(name).parent;
    return parent ? leader->controller.snapshot().queues.at(*parent).name : "";
  }
  std::string Message(const char* queue) { return TextAt(StatusOf(queue), {"message"}); }
};

TEST(KubernetesQueueParents, LendToTheirQueuesFirst) {
  ParentWorld world;
  world.AddQueue("ads", 4);
  world.cluster.Apply(Queues(), "research", Json::object());
  world.AddQueue("speech", 2, "research");
  world.AddQueue("vision", 2, "research");
  world.AddJob("ads-borrows", "ads", 8);
  world.Run(10 * kSecond);
  EXPECT_EQ(world.PhaseOf("ads-borrows"), "running");
  // Beyond what vision is guaranteed, but not the parent.
  world.AddJob("sees", "vision", 4);
  world.Run(2 * kMinute);
  for (int leader = 0; leader < 2; ++leader) {
    EXPECT_EQ(world.PhaseOf("ads-borrows"), "pending");
    EXPECT_EQ(world.PhaseOf("sees"), "running");
    EXPECT_EQ(world.ParentOf("vision"), "research");
    EXPECT_EQ(world.ParentOf("research"), "");
    const Json research = world.StatusOf("research"), vision = world.StatusOf("vision");
    EXPECT_EQ(TextAt(research, {"guaranteed", kGpuResource}), "4") << "that of its queues";
    EXPECT_EQ(TextAt(research, {"used", kGpuResource}), "4") << "what its queues use";
    EXPECT_EQ(TextAt(research, {"borrowed", kGpuResource}), "0");
    EXPECT_EQ(NumberAt(research, {"running"}), 1);
    EXPECT_EQ(TextAt(vision, {"borrowed", kGpuResource}), "2");
    EXPECT_EQ(world.ConditionOf("vision", "HasParent"), "True HasParent: HasParent");
    EXPECT_EQ(world.ConditionOf("research", "HasParent"), "none");
    EXPECT_THAT(world.ConditionOf("research", "Guaranteed"), HasSubstr("True"))
        << "what it is guaranteed counts once";
    EXPECT_EQ(world.Message("vision"), "");
    EXPECT_EQ(world.SeenByClients().snapshot.queues.at(2).parent, 1);
    world.StartController();
    world.Run(10 * kSecond);
  }
  EXPECT_THAT(world.wrong, IsEmpty());
}

TEST(KubernetesQueueParents, OneThatCannotBeOneIsNone) {
  ParentWorld world;
  world.AddQueue("lost", 1, "nowhere");
  world.AddQueue("child", 1, "middle");
  world.AddQueue("middle", 1, "top");
  world.AddQueue("top", 1);
  world.AddQueue("self", 1, "self");
  Json limited = Gpus(0, 4);
  world.cluster.Apply(Queues(), "limited", limited);
  world.AddQueue("under", 1, "limited");
  world.AddJob("runs", "limited", 1);
  world.AddJob("of-lost", "lost", 1);
  world.Run(10 * kSecond);
  for (const char* queue : {"lost", "self", "under"}) {
    EXPECT_EQ(world.ParentOf(queue), "") << queue;
    EXPECT_THAT(world.ConditionOf(queue, "Accepted"), HasSubstr("True")) << queue;
    EXPECT_EQ(world.ConditionOf(queue, "HasParent").substr(0, 5), "False") << queue;
    EXPECT_THAT(world.ConditionOf(queue, "HasParent"), HasSubstr(world.Message(queue))) << queue;
  }
  EXPECT_EQ(world.ParentOf("middle"), "top");
  EXPECT_THAT(world.Message("lost"), HasSubstr("there is no Queue nowhere, which spec.parent"));
  EXPECT_EQ(world.ParentOf("child"), "middle");
  EXPECT_THAT(world.Message("self"), HasSubstr("its parents come back to it (self, self)"));
  EXPECT_THAT(world.Message("under"), HasSubstr("give its limit, fairShare, members"));
  EXPECT_EQ(world.PhaseOf("runs"), "running");
  EXPECT_EQ(world.PhaseOf("of-lost"), "running");
  // Each is mended by a change of the other queue.
  world.AddQueue("nowhere", 0);
  world.AddQueue("self", 1);
  world.AddQueue("limited", 0);
  world.Run(10 * kSecond);
  EXPECT_EQ(world.ParentOf("lost"), "nowhere");
  EXPECT_EQ(world.ConditionOf("self", "HasParent"), "none");
  EXPECT_EQ(world.ParentOf("under"), "limited");
  EXPECT_THAT(world.ConditionOf("lost", "HasParent"), HasSubstr("True"));
  EXPECT_EQ(world.Message("lost"), "");
  world.cluster.Delete(Queues(), "", "nowhere", "", std::nullopt);
  world.Run(10 * kSecond);
  EXPECT_EQ(world.ParentOf("lost"), "");
  EXPECT_THAT(world.Message("lost"), HasSubstr("there is no Queue nowhere"));
  EXPECT_THAT(world.wrong, IsEmpty());
}

TEST(KubernetesQueueParents, MayHaveParents) {
  ParentWorld world;
  world.AddQueue("company", 0);
  world.AddQueue("research", 4, "company");
  world.AddQueue("vision", 2, "research");
  world.AddQueue("ads", 0, "company");
  world.AddQueue("guests", 0);
  world.AddJob("guests-borrow", "guests", 8);
  world.Run(10 * kSecond);
  world.AddJob("ads-borrows", "ads", 4);
  world.Run(2 * kMinute);
  EXPECT_EQ(world.PhaseOf("guests-borrow"), "pending");
  EXPECT_EQ(world.PhaseOf("ads-borrows"), "running") << "within the company's guarantee";
  world.AddJob("sees", "vision", 4);
  world.AddJob("guests-wait", "guests", 4);
  world.Run(2 * kMinute);
  EXPECT_EQ(world.PhaseOf("sees"), "running") << "within that of research";
  EXPECT_EQ(TextAt(world.StatusOf("research"), {"used", kGpuResource}), "4");
  EXPECT_EQ(TextAt(world.StatusOf("vision"), {"borrowed", kGpuResource}), "2");
  EXPECT_EQ(TextAt(world.StatusOf("company"), {"guaranteed", kGpuResource}), "4");
  EXPECT_EQ(NumberAt(world.StatusOf("company"), {"running"}),
            world.PhaseOf("ads-borrows") == "running" ? 2 : 1);
  // A cycle takes the parents of its queues only, not of those below.
  world.AddQueue("company", 0, "research");
  world.Run(10 * kSecond);
  for (const char* queue : {"company", "research"}) {
    EXPECT_EQ(world.ParentOf(queue), "") << queue;
    EXPECT_THAT(world.ConditionOf(queue, "HasParent"), HasSubstr("False ParentCycle: its parents"));
  }
  EXPECT_EQ(world.ParentOf("vision"), "research");
  world.AddQueue("company", 0);
  world.Run(10 * kSecond);
  EXPECT_EQ(world.ParentOf("research"), "company");
  EXPECT_THAT(world.wrong, IsEmpty());
}

TEST(KubernetesQueueParents, AreNotTooMany) {
  ParentWorld world;
  std::string above = "q0";
  world.AddQueue("q0", 0);
  for (int at = 1; at <= Queue::kMostLevels; ++at) {
    const std::string name = fmt::format("q{}", at);
    world.AddQueue(name.c_str(), 0, above.c_str());
    above = name;
  }
  world.Run(10 * kSecond);
  EXPECT_EQ(world.ParentOf("q7"), "q6");
  EXPECT_EQ(world.ParentOf("q8"), "");
  EXPECT_THAT(world.ConditionOf("q8", "HasParent"),
              HasSubstr("False TooManyParents: q7, which spec.parent names, and the parents above "
                        "it are more than 7"));
}

TEST(KubernetesQueueParents, AreGuaranteedNoLessThanTheirQueues) {
  ParentWorld world;
  world.AddQueue("research", 3);
  world.AddQueue("speech", 2, "research");
  world.AddQueue("vision", 2, "research");
  world.Run(10 * kSecond);
  EXPECT_EQ(world.Find("research").guaranteed.gpu(), 4);
  EXPECT_EQ(world.ConditionOf("research", "Guaranteed"),
            "False LessThanItsQueues: spec.guaranteed has 3 nvidia.com/gpu, but its queues "
            "together have 4 nvidia.com/gpu, which counts for it, too: guarantee it as much, or "
            "leave that out");
  EXPECT_THAT(world.Message("research"), HasSubstr("spec.guaranteed has 3"));
  EXPECT_EQ(world.ParentOf("vision"), "research");
  world.AddQueue("research", 6);
  world.Run(10 * kSecond);
  EXPECT_EQ(world.Find("research").guaranteed.gpu(), 6);
  EXPECT_THAT(world.ConditionOf("research", "Guaranteed"), HasSubstr("True"));
}

TEST(KubernetesQueueParents, TakeNoJobsThemselves) {
  ParentWorld world;
  world.AddQueue("research", 4);
  world.AddJob("runs", "research", 2);
  world.AddJob("grows", "research", 2);
  world.AddJob("waits", "research", 8);
  world.Run(10 * kSecond);
  // Its edit applies when it starts again.
  world.cluster.EditJob("ads", "grows", [](Json& spec) { spec["priority"] = -1; });
  world.Run(5 * kSecond);
  world.AddQueue("vision", 4, "research");
  world.AddJob("later", "research", 1);
  world.Run(10 * kSecond);
  const char* held = "queue research is now the parent of others, and takes no jobs itself";
  for (int leader = 0; leader < 2; ++leader) {
    for (const char* name : {"runs", "grows"}) EXPECT_EQ(world.PhaseOf(name), "running") << name;
    for (const char* name : {"waits", "later"}) {
      EXPECT_EQ(world.PhaseOf(name), "pending") << name;
      EXPECT_THAT(world.MessageOf(name), HasSubstr(held)) << name;
    }
    EXPECT_EQ(world.HeldToClients(4), world.MessageOf("later"));
    EXPECT_EQ(TextAt(world.StatusOf("research"), {"used", kGpuResource}), "0")
        << "what still runs there has no right to its queues' guarantee";
    const Snapshot& snapshot = world.leader->controller.snapshot();
    for (const Job& job : snapshot.jobs)
      EXPECT_NE(&snapshot.queues.at(job.queue), &world.Find("research")) << job.id;
    world.StartController();
    world.Run(10 * kSecond);
  }
  world.Ask("runs", kRequestPreempt);
  world.Run(kMinute);
  EXPECT_THAT(world.MessageOf("runs"), HasSubstr(held));
  world.cluster.EditJob("ads", "later", [](Json& spec) { spec["queue"] = "vision"; });
  world.Run(10 * kSecond);
  EXPECT_EQ(world.PhaseOf("later"), "running");
  // Without its queue it is no parent any more.
  world.cluster.Delete(Queues(), "", "vision", "", std::nullopt);
  world.Run(10 * kSecond);
  EXPECT_EQ(world.PhaseOf("runs"), "running");
  EXPECT_EQ(TextAt(world.StatusOf("research"), {"used", kGpuResource}), "2")
      << "an edited job counts again when it starts again";
  EXPECT_THAT(world.wrong, IsEmpty());
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
