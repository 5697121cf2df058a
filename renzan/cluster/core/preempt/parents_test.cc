// Queues with parents: what a queue does not use of its guarantee is lent within the parent first.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/cluster/core/testing/schedule_testing.h"

namespace renzan::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

constexpr int kVision = 0, kAds = 1, kSpeech = 2;

// Vision and speech have a parent; ads has none.
class ParentsTest : public ScheduleTest {
 protected:
  ParentsTest() { Guarantee(8, 0, 0); }
  void Guarantee(int64_t vision, int64_t speech, int64_t ads) {
    snapshot.queues = {{.name = "vision", .guaranteed = Gpus(vision), .parent = 3},
                       {.name = "ads", .guaranteed = Gpus(ads)},
                       {.name = "speech", .guaranteed = Gpus(speech), .parent = 3},
                       {.name = "research", .guaranteed = Gpus(vision + speech)}};
  }
  static Resources Gpus(int64_t gpus) { return {.amount = {0, 0, gpus}}; }
};

TEST_F(ParentsTest, ASiblingBorrowsBeforeAStranger) {
  Nodes(1);
  const JobId strangers = Add({.queue = kAds, .gpus = 8});
  const JobId siblings = Add({.queue = kSpeech, .gpus = 8});
  EXPECT_THAT(Started(Run()), ElementsAre(siblings));
  for (Queue& queue : snapshot.queues) queue.parent.reset();
  snapshot.queues[3].guaranteed = {};
  EXPECT_THAT(Started(Run()), ElementsAre(strangers));
}

TEST_F(ParentsTest, EvenIfTheStrangersPriorityIsHigher) {
  Nodes(1);
  Add({.queue = kAds, .priority = 9, .gpus = 8});
  const JobId siblings = Add({.queue = kSpeech, .gpus = 8});
  EXPECT_THAT(Started(Run()), ElementsAre(siblings));
}

TEST_F(ParentsTest, ASiblingReclaimsFromAStrangerWhatItsParentIsGuaranteed) {
  Nodes(1);
  const JobId strangers = Add({.queue = kAds, .priority = 9, .gpus = 8, .on = {{0, 1}}});
  const JobId siblings = Add({.queue = kSpeech, .gpus = 8});
  Decisions decisions = Run();
  EXPECT_THAT(Stopped(decisions), ElementsAre(strangers));
  EXPECT_EQ(decisions.stops[0].reason, StopReason::kReclaimed);
  EXPECT_EQ(decisions.stops[0].on_behalf_of, siblings);
  // Not beyond that.
  Guarantee(4, 0, 0);
  EXPECT_THAT(Run().stops, IsEmpty());
}

TEST_F(ParentsTest, AStrangerCannotReclaimWhatASiblingUsesOfTheParents) {
  Nodes(1);
  Guarantee(8, 0, 8);
  Add({.queue = kSpeech, .gpus = 8, .on = {{0, 1}}});
  Add({.queue = kAds, .gpus = 8});
  EXPECT_THAT(Run().stops, IsEmpty());
  Guarantee(4, 0, 8);
  EXPECT_THAT(Stopped(Run()), ElementsAre(1));
}

TEST_F(ParentsTest, TheOwnerReclaimsFromASibling) {
  Nodes(1);
  const JobId siblings = Add({.queue = kSpeech, .priority = 9, .gpus = 8, .on = {{0, 1}}});
  Add({.queue = kVision, .gpus = 8});
  EXPECT_THAT(Stopped(Run()), ElementsAre(siblings));
}

// Although the sibling's job is the cheaper victim: it has run for a minute, the other for an hour.
TEST_F(ParentsTest, LoansOutsideTheParentAreReclaimedFirst) {
  Nodes(2);
  const JobId strangers =
      Add({.queue = kAds, .gpus = 8, .checkpoints = false, .on = {{0, 1}}, .ran_ms = kHour});
  const JobId siblings =
      Add({.queue = kSpeech, .gpus = 8, .checkpoints = false, .on = {{1, 1}}, .ran_ms = kMinute});
  Guarantee(16, 0, 0);
  Add({.queue = kVision, .gpus = 8});
  EXPECT_THAT(Stopped(Run()), ElementsAre(strangers));
  for (Queue& queue : snapshot.queues) queue.parent.reset();
  snapshot.queues[3].guaranteed = {};
  EXPECT_THAT(Stopped(Run()), ElementsAre(siblings));
}

// Of the parent's 8 GPUs speech uses all. What ads has borrowed is none of them.
TEST_F(ParentsTest, AnOwnerReclaimsFromASiblingWhatTheParentHasNotLentToOthers) {
  Nodes(2);
  Add({.queue = kAds, .gpus = 8, .on = {{0, 1}}});
  const JobId siblings = Add({.queue = kSpeech, .gpus = 8, .on = {{1, 1}}});
  Add({.queue = kVision, .gpus = 8});
  EXPECT_THAT(Stopped(Run()), ElementsAre(siblings));
}

TEST_F(ParentsTest, AnOwnerReclaimsWhatASiblingAndAStrangerHaveBorrowedTogether) {
  Nodes(1);
  const JobId siblings = Add({.queue = kSpeech, .gpus = 4, .on = {{0, 1}}});
  const JobId strangers = Add({.queue = kAds, .gpus = 4, .on = {{0, 1}}});
  Add({.queue = kVision, .gpus = 8});
  EXPECT_THAT(Stopped(Run()), UnorderedElementsAre(siblings, strangers));
}

// An elastic job's workers above its minimum are borrowed. Those of two queues of one parent are
// only reclaimed as far as the parent uses more than it is guaranteed.
TEST_F(ParentsTest, AStrangerReclaimsNoMoreThanTheParentHasBorrowed) {
  Nodes(1, 12);
  for (const int queue : {kVision, kSpeech})
    Add({.queue = queue, .workers = 2, .max_workers = 6, .on = {{0, 6}}});
  Add({.queue = kAds, .gpus = 8});
  Guarantee(8, 0, 8);
  EXPECT_THAT(Run().resizes, IsEmpty());
  Guarantee(4, 0, 8);
  EXPECT_THAT(Run().resizes, SizeIs(2));
}

// The claim of vision finds no room, because what runs on both nodes keeps it.
TEST_F(ParentsTest, AClaimThatFindsNoRoomIsLentWithinTheParent) {
  Nodes(2);
  Guarantee(8, 0, 2);
  for (const int node : {0, 1}) {
    Add({.queue = kAds, .on = {{node, 1}}, .preemptible = false});
    Add({.queue = kAds, .gpus = 7, .on = {{node, 1}}});
  }
  Add({.queue = kVision, .gpus = 8});
  const JobId siblings = Add({.queue = kSpeech, .gpus = 7});
  const Decisions decisions = Run();
  ASSERT_THAT(decisions.stops, SizeIs(1));
  EXPECT_EQ(decisions.stops[0].on_behalf_of, siblings);
}

// Speech's user has used much of it: that matters to the jobs of speech only.
TEST_F(ParentsTest, FairShareOfAQueueDoesNotReachItsSiblings) {
  Nodes(1);
  Guarantee(0, 0, 0);
  snapshot.queues[3].guaranteed = Gpus(8);
  snapshot.queues[kSpeech].fair_share = {.half_life = 24 * kHour,
                                         .used = {{0, 144'000.0}, {1, 3'600.0}}};
  const JobId first = Add({.queue = kSpeech, .gpus = 8, .user = 0});
  const JobId siblings = Add({.queue = kVision, .gpus = 8});
  EXPECT_THAT(Started(Run()), ElementsAre(first));
  const JobId less = Add({.queue = kSpeech, .gpus = 8, .user = 1});
  EXPECT_THAT(Started(Run()), ElementsAre(less));
  snapshot.Find(siblings)->priority = 1;
  EXPECT_THAT(Started(Run()), ElementsAre(siblings));
}

// It fits into the parent's rest, but could only have the room of a job within its queue's quota.
TEST_F(ParentsTest, AClaimCountsNoRoomOfJobsThatStandBetter) {
  Nodes(2);
  Guarantee(4, 0, 8);
  snapshot.queues[3].guaranteed = Gpus(12);
  Add({.queue = kVision, .gpus = 4, .on = {{0, 1}}});
  Add({.queue = kAds, .gpus = 8, .on = {{1, 1}}, .preemptible = false});
  Add({.queue = kVision, .priority = 5, .gpus = 8});
  const JobId siblings = Add({.queue = kSpeech, .gpus = 4});
  Add({.queue = kAds, .priority = 9, .gpus = 4});
  EXPECT_THAT(Started(Run()), ElementsAre(siblings));
}

TEST_F(ParentsTest, ClaimsOfSiblingsDoNotCountTheSameRoomTwice) {
  Nodes(2);
  Guarantee(8, 0, 4);
  snapshot.queues[3].guaranteed = Gpus(16);
  snapshot.queues.push_back({.name = "third", .parent = 3});
  Add({.queue = kAds, .gpus = 4, .on = {{1, 1}}, .preemptible = false});
  const JobId owners = Add({.queue = kVision, .gpus = 8});
  Add({.queue = kSpeech, .priority = 1, .gpus = 8});
  const JobId thirds = Add({.queue = 4, .gpus = 4});
  Add({.queue = kAds, .priority = 9, .gpus = 4});
  EXPECT_THAT(Started(Run()), UnorderedElementsAre(owners, thirds));
}

}  // namespace
}  // namespace renzan::cluster
