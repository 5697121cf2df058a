// Parents that have parents: between two queues counts what lies below the lowest parent of both.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "renzan/cluster/core/order/queue_tree.h"
#include "renzan/cluster/core/order/rank.h"
#include "renzan/cluster/core/testing/schedule_testing.h"

namespace renzan::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Vision and speech are queues of research, which is one of the company's, as ads is; guests have
// no parent.
class QueueTreesTest : public ScheduleTest {
 protected:
  static constexpr int kVision = 0, kSpeech = 1, kAds = 2, kGuests = 3, kResearch = 4, kCompany = 5;
  QueueTreesTest() { Guarantee(8); }
  void Guarantee(int64_t vision, int64_t research = 0, int64_t company = 0) {
    research = std::max(research, vision);
    snapshot.queues = {{.name = "vision", .guaranteed = Gpus(vision), .parent = kResearch},
                       {.name = "speech", .parent = kResearch},
                       {.name = "ads", .parent = kCompany},
                       {.name = "guests"},
                       {.name = "research", .guaranteed = Gpus(research), .parent = kCompany},
                       {.name = "company", .guaranteed = Gpus(std::max(company, research))}};
  }
  static Resources Gpus(int64_t gpus) { return {.amount = {0, 0, gpus}}; }
};

TEST_F(QueueTreesTest, TheSidesLieBelowTheLowestParentOfBoth) {
  EXPECT_EQ(SideOf(snapshot, kVision, kSpeech), kVision);
  EXPECT_EQ(SideOf(snapshot, kVision, kAds), kResearch);
  EXPECT_EQ(SideOf(snapshot, kAds, kVision), kAds);
  EXPECT_EQ(SideOf(snapshot, kVision, kGuests), kCompany);
  EXPECT_EQ(SideOf(snapshot, kGuests, kVision), kGuests);
  EXPECT_THAT(LineageOf(snapshot, kVision), ElementsAre(kVision, kResearch, kCompany));
  EXPECT_THAT(ParentsUpwards(snapshot), ElementsAre(kResearch, kCompany));
}

TEST_F(QueueTreesTest, WhatIsIdleIsLentWithinTheLowestParentFirst) {
  Nodes(1);
  const JobId of_guests = Add({.queue = kGuests, .priority = 9, .gpus = 8});
  const JobId of_ads = Add({.queue = kAds, .priority = 5, .gpus = 8});
  const JobId of_speech = Add({.queue = kSpeech, .gpus = 8});
  EXPECT_THAT(Started(Run()), ElementsAre(of_speech));
  snapshot.Find(of_speech)->eligible_at = snapshot.now + kMinute;
  EXPECT_THAT(Started(Run()), ElementsAre(of_ads));
  snapshot.Find(of_ads)->eligible_at = snapshot.now + kMinute;
  EXPECT_THAT(Started(Run()), ElementsAre(of_guests));
}

// Although jobs that have run for less time are cheaper victims.
TEST_F(QueueTreesTest, WhoBorrowsFromFarthestGivesBackFirst) {
  Nodes(3);
  Guarantee(24);
  const auto add = [&](int queue, int node, TimeMs ran) {
    return Add({.queue = queue, .gpus = 8, .checkpoints = false, .on = {{node, 1}}, .ran_ms = ran});
  };
  const JobId of_guests = add(kGuests, 0, kHour);
  const JobId of_ads = add(kAds, 1, 10 * kMinute);
  const JobId of_speech = add(kSpeech, 2, kMinute);
  Add({.queue = kVision, .gpus = 8});
  EXPECT_THAT(Stopped(Run()), ElementsAre(of_guests));
  snapshot.Find(of_guests)->preemptible = false;
  EXPECT_THAT(Stopped(Run()), ElementsAre(of_ads));
  snapshot.Find(of_ads)->preemptible = false;
  EXPECT_THAT(Stopped(Run()), ElementsAre(of_speech));
}

// Of what the company is guaranteed, ads uses what belongs to research: that goes back, and not
// what speech uses within research's guarantee, nor what guests have borrowed elsewhere.
TEST_F(QueueTreesTest, WhoeverUsesItGivesItBack) {
  Nodes(3);
  Guarantee(8, 16);
  const auto add = [&](int queue, int node, TimeMs ran) {
    return Add({.queue = queue, .gpus = 8, .checkpoints = false, .on = {{node, 1}}, .ran_ms = ran});
  };
  add(kGuests, 0, kMinute);
  const JobId of_ads = add(kAds, 1, kHour);
  add(kSpeech, 2, kMinute);
  Add({.queue = kVision, .gpus = 8});
  EXPECT_THAT(Stopped(Run()), ElementsAre(of_ads));
}

// A job of a long branch that is only within the quota of its queue's parent, or of one above it,
// reclaims from a queue right below the common parent.
TEST_F(QueueTreesTest, BranchesMayBeOfUnequalLength) {
  Nodes(1);
  Guarantee(0, 8);
  const JobId of_ads = Add({.queue = kAds, .priority = 9, .gpus = 8, .on = {{0, 1}}});
  const JobId of_speech = Add({.queue = kSpeech, .gpus = 8});
  Decisions decisions = Run();
  EXPECT_THAT(Stopped(decisions), ElementsAre(of_ads));
  EXPECT_EQ(decisions.stops[0].reason, StopReason::kReclaimed);
  EXPECT_EQ(decisions.stops[0].on_behalf_of, of_speech);
  // Another level of research.
  snapshot.queues.push_back({.name = "lab", .parent = kResearch});
  snapshot.queues[kSpeech].parent = kCompany + 1;
  EXPECT_THAT(Stopped(Run()), ElementsAre(of_ads));
  // But not what is the company's own.
  Guarantee(0, 0, 8);
  EXPECT_THAT(Run().stops, IsEmpty());
}

TEST_F(QueueTreesTest, SaysWhoGoesFirstAndWhy) {
  const auto rank = [&](int queue, int above) {
    return Rank{.standing = StandingWithin(snapshot, queue, above)};
  };
  const Rank own = rank(kSpeech, kSpeech), lower = rank(kSpeech, kResearch),
             upper = rank(kSpeech, kCompany), borrows;
  EXPECT_LT(own, lower);
  EXPECT_LT(lower, upper);
  EXPECT_LT(upper, borrows);
  EXPECT_STREQ(WhyAhead(own, lower), "within its queue's quota");
  EXPECT_STREQ(WhyAhead(lower, upper), "within the quota of a nearer parent");
  EXPECT_STREQ(WhyAhead(upper, borrows), "within the quota of its queue's parent");
}

TEST_F(QueueTreesTest, NobodyOutsideReclaimsWhatAParentAboveIsGuaranteed) {
  Nodes(1);
  Add({.queue = kSpeech, .gpus = 8, .on = {{0, 1}}});
  snapshot.queues[kGuests].guaranteed = Gpus(8);
  const JobId of_guests = Add({.queue = kGuests, .priority = 9, .gpus = 8});
  EXPECT_THAT(Run().stops, IsEmpty()) << "within the guarantee of research";
  Guarantee(0, 0, 8);
  snapshot.queues[kGuests].guaranteed = Gpus(8);
  EXPECT_THAT(Run().stops, IsEmpty()) << "within that of the company";
  Guarantee(0, 0, 4);
  snapshot.queues[kGuests].guaranteed = Gpus(8);
  EXPECT_EQ(Run().stops.at(0).on_behalf_of, of_guests);
}

}  // namespace
}  // namespace renzan::cluster
