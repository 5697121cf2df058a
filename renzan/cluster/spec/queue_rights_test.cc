#include "renzan/cluster/spec/queue_rights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/error.h"

namespace renzan::cluster::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Queue Named(const std::string& name, QueueRights rights = {}) {
  Queue queue{.name = name};
  queue.rights = std::move(rights);
  return queue;
}

JobSpec WithPriority(int priority) {
  JobSpec spec;
  spec.priority = priority;
  return spec;
}

const std::vector<Queue> kQueues = {
    Named("default"), Named("research", {.max_priority = 5}),
    Named("vision",
          {.members = QueueMembers{{"ann", "bob"}, {"vision"}, {"ads"}}, .max_priority = 10}),
    Named("secret", {.members = QueueMembers{{"root"}, {}, {}}, .max_priority = -3})};

// Why it is refused by the queue of that index.
std::string Why(size_t queue, const Submitter& submitter, const JobSpec& spec = {}) {
  return WhyQueueRefuses(kQueues[queue], kQueues, spec, submitter);
}

TEST(QueueRights, WhoeverIsOnAListIsAMember) {
  EXPECT_EQ(Why(0, {.user = "eve"}), "");
  EXPECT_EQ(Why(2, {.user = "ann"}), "");
  EXPECT_EQ(Why(2, {.user = "eve", .groups = {"users", "vision"}}), "");
  EXPECT_EQ(Why(2, {.user = "eve", .ns = "ads"}), "");
  EXPECT_EQ(Why(2, {.ns = "ads"}), "");
  EXPECT_NE(Why(2, {.user = "eve", .groups = {"users", "ann"}, .ns = "bob"}), "");
  EXPECT_EQ(Why(2, {.user = "eve", .administrator = true}), "");
}

TEST(QueueRights, ARefusalSaysWhichQueuesTheUserMayUse) {
  EXPECT_EQ(Why(2, {.user = "eve"}),
            "queue 'vision' is for its members, and user 'eve' is none of them "
            "(queues.vision.members): use default or research, or ask the operator to be one");
  EXPECT_EQ(Why(3, {.user = "ann", .ns = "web"}),
            "queue 'secret' is for its members, and user 'ann' in namespace 'web' is none of them "
            "(spec.members of the Queue): use default or research or vision, or ask an "
            "administrator to be one");
  const std::vector<Queue> only = {kQueues[3]};
  EXPECT_EQ(WhyQueueRefuses(only[0], only, {}, {.user = "ann"}),
            "queue 'secret' is for its members, and user 'ann' is none of them "
            "(queues.secret.members): ask the operator to be one");
  std::vector<Queue> many(20, kQueues[0]);
  many[3].removed = true;
  many.push_back(kQueues[3]);
  EXPECT_THAT(WhyQueueRefuses(many.back(), many, {}, {.user = "ann"}),
              HasSubstr("or default or others, or ask"));
}

// Where only the namespace is known, the user's rights were checked before, or nobody has them.
TEST(QueueRights, AnUnknownUserHasRightsOnlyIfTheyWereChecked) {
  EXPECT_THAT(Why(2, {.ns = "web"}), HasSubstr("namespace 'web' is none of them"));
  using Checked = Submitter::Checked;
  EXPECT_EQ(Why(2, {.ns = "web", .checked = Checked::kYes}), "");
  EXPECT_THAT(Why(2, {.ns = "web", .checked = Checked::kTooEarly}),
              HasSubstr("who submitted this job was not checked"));
  EXPECT_EQ(Why(2, {.ns = "web", .administrator = true, .checked = Checked::kTooEarly}), "");
  const std::vector<Queue> by_namespace = {Named("a", {.members = QueueMembers{{}, {}, {"ads"}}})};
  const auto why = [&](const char* ns, Checked checked) {
    return WhyQueueRefuses(by_namespace[0], by_namespace, {}, {.ns = ns, .checked = checked});
  };
  EXPECT_EQ(why("ads", Checked::kTooEarly), "");
  for (const Checked checked : {Checked::kTooEarly, Checked::kYes})
    EXPECT_THAT(why("web", checked), HasSubstr("namespace 'web' is none of them"));
}

TEST(QueueRights, APriorityNeedsTheRightOfItsQueueOrElseOfTheCluster) {
  const Submitter ann{.user = "ann", .max_priority = 0};
  EXPECT_EQ(Why(0, ann, WithPriority(0)), "");
  EXPECT_EQ(Why(0, ann, WithPriority(1)),
            "priority 1: in queue 'default', jobs of user 'ann' may have at most 0 "
            "(limits.max_priority; queues.default.max_priority would replace it): ask for less, or "
            "ask the operator, who may have more or raise it");
  EXPECT_EQ(Why(2, ann, WithPriority(10)), "");
  EXPECT_EQ(Why(2, ann, WithPriority(11)),
            "priority 11: in queue 'vision', jobs of user 'ann' may have at most 10 "
            "(queues.vision.max_priority): ask for less, or ask the operator, who may have more or "
            "raise it");
  // A queue may also take less than others.
  EXPECT_NE(Why(3, {.user = "root", .max_priority = 50}, WithPriority(0)), "");
  for (size_t queue = 0; queue < kQueues.size(); ++queue) {
    EXPECT_EQ(Why(queue, {.user = "op", .administrator = true}, WithPriority(kMaxPriority)), "");
    EXPECT_EQ(Why(queue, ann, WithPriority(-kMaxPriority)).empty(), queue != 3) << queue;
  }
  EXPECT_EQ(Why(0, {.ns = "ads", .max_priority = 0}, WithPriority(1)),
            "priority 1: in queue 'default', jobs of namespace 'ads' may have at most 0 "
            "(limits.maxPriority of the ClusterPolicy 'default'; spec.maxPriority of the Queue "
            "would replace it): ask for less, or ask an administrator to raise it, or to add 'ads' "
            "to limits.exemptNamespaces");
}

TEST(QueueRights, NobodyIsExemptFromWhatNobodyMayStop) {
  const std::vector<Queue> queues = {Named("a", {.only_preemptible = true})};
  JobSpec spec;
  EXPECT_EQ(WhyQueueRefuses(queues[0], queues, spec, {.user = "ann"}), "");
  spec.preemptible = false;
  EXPECT_NE(WhyQueueRefuses(queues[0], queues, spec, {.user = "op", .administrator = true}), "");
}

TEST(QueueRights, MembersWhoDoNotExistAreFound) {
  const auto exists = [](const std::string& name) {
    return name == "ann" || name == "vision" ? "" : "there is no such";
  };
  const auto check = [&](const QueueMembers& members) {
    return CheckMembers({{"open", {}}, {"a", {.members = members}}}, exists, exists);
  };
  EXPECT_THAT(check({{"ann"}, {"vision"}, {}}), IsEmpty());
  EXPECT_THAT(check({{"an", "ann"}, {}, {}}),
              ElementsAre("queues.a.members.users has 'an': there is no such"));
  try {
    check({{"an"}, {"visoin"}, {}});
    ADD_FAILURE() << "nobody could use it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_STREQ(error.what(),
                 "queues.a.members.users has 'an': there is no such; queues.a.members.groups has "
                 "'visoin': there is no such; so nobody could use queue 'a': correct the names, or "
                 "leave members out for everybody");
  }
}

}  // namespace
}  // namespace renzan::cluster::spec
