#include "renzan/cluster/local/controller/accounting.h"

#include <gmock/gmock.h>

#include <map>
#include <string>
#include <utility>

#include "renzan/cluster/core/testing/schedule_testing.h"

namespace renzan::cluster::local {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class LoansTest : public ScheduleTest {
 protected:
  LoansTest() {
    Nodes(4);
    snapshot.queues = {{.name = "vision", .guaranteed = GpusWithCpus(8)},
                       {.name = "ads", .guaranteed = GpusWithCpus(8)},
                       {.name = "speech"},
                       {.name = "other"}};
  }
  std::map<std::string, double> Loans() {
    std::map<std::string, double> loans;
    for (const Loan& loan : LoansNow(snapshot))
      loans[snapshot.queues[loan.lender].name + " to " + snapshot.queues[loan.borrower].name] =
          loan.gpus;
    return loans;
  }
};

TEST_F(LoansTest, WhatIsIdleIsLentInProportion) {
  Add({.queue = 2, .gpus = 6, .on = {{0, 1}}});
  Add({.queue = 3, .gpus = 2, .on = {{1, 1}}});
  EXPECT_THAT(Loans(), ElementsAre(Pair("ads to other", 1), Pair("ads to speech", 3),
                                   Pair("vision to other", 1), Pair("vision to speech", 3)));
}

TEST_F(LoansTest, AmongTheQueuesOfAParentFirst) {
  snapshot.queues.push_back({.name = "research", .guaranteed = GpusWithCpus(8)});
  snapshot.queues[0].parent = snapshot.queues[2].parent = 4;
  Add({.queue = 2, .gpus = 6, .on = {{0, 1}}});
  Add({.queue = 3, .gpus = 5, .on = {{1, 1}}});
  EXPECT_THAT(Loans(), ElementsAre(Pair("ads to other", 4), Pair("vision to other", 1),
                                   Pair("vision to speech", 6)));
}

TEST_F(LoansTest, WhatAParentHasBeyondItsQueuesIsNoLoanToThem) {
  snapshot.queues.push_back({.name = "research", .guaranteed = GpusWithCpus(12)});
  snapshot.queues[0].parent = snapshot.queues[2].parent = 4;
  Add({.queue = 0, .gpus = 8, .on = {{0, 1}}});
  Add({.queue = 2, .gpus = 3, .on = {{1, 1}}});
  EXPECT_THAT(Loans(), IsEmpty());
  // Others borrow the rest of it.
  Add({.queue = 3, .gpus = 5, .on = {{2, 1}}});
  snapshot.queues[1].guaranteed = GpusWithCpus(4);
  EXPECT_THAT(Loans(), ElementsAre(Pair("ads to other", 4), Pair("research to other", 1)));
}

TEST_F(LoansTest, NothingIsLeftOfWhatTheParentLends) {
  snapshot.queues = {{.name = "lends", .guaranteed = GpusWithCpus(24), .parent = 5},
                     {.name = "a", .parent = 5},
                     {.name = "b", .parent = 5},
                     {.name = "c", .parent = 5},
                     {.name = "idle", .guaranteed = GpusWithCpus(8)},
                     {.name = "parent", .guaranteed = GpusWithCpus(24)}};
  for (const auto& [queue, gpus] : {std::pair(1, 1), std::pair(2, 6), std::pair(3, 15)})
    Add({.queue = queue, .gpus = gpus, .on = {{queue, 1}}});
  EXPECT_EQ(Loans().size(), 3);
}

// Research's own queue lends to speech first, then the company's other queue, and last a stranger.
TEST_F(LoansTest, WithinTheLowestParentFirst) {
  const auto loans = [&](int64_t vision, int64_t ads, int64_t company) {
    snapshot.jobs.clear();
    snapshot.queues = {{.name = "vision", .guaranteed = GpusWithCpus(vision), .parent = 3},
                       {.name = "ads", .guaranteed = GpusWithCpus(ads), .parent = 4},
                       {.name = "speech", .parent = 3},
                       {.name = "research", .guaranteed = GpusWithCpus(vision), .parent = 4},
                       {.name = "company", .guaranteed = GpusWithCpus(company)},
                       {.name = "other", .guaranteed = GpusWithCpus(8)}};
    Add({.queue = 2, .gpus = 8, .on = {{0, 1}}});
    return Loans();
  };
  EXPECT_THAT(loans(8, 8, 16), ElementsAre(Pair("vision to speech", 8)));
  EXPECT_THAT(loans(5, 8, 13), ElementsAre(Pair("ads to speech", 3), Pair("vision to speech", 5)));
  EXPECT_THAT(loans(5, 0, 7), ElementsAre(Pair("other to speech", 1), Pair("vision to speech", 5)))
      << "2 are the company's own";
}

TEST_F(LoansTest, AGrandChallengeBorrowsNothing) {
  Add({.queue = 3, .gpus = 8, .on = {{1, 1}}});
  snapshot.jobs.back().quota_exempt = true;
  EXPECT_THAT(Loans(), IsEmpty());
}

}  // namespace
}  // namespace renzan::cluster::local
