// The disk of the state directory becomes nearly full.

#include <fstream>

#include "renzan/base/file/file.h"
#include "renzan/cluster/local/controller/controller_for_test.h"

namespace renzan::cluster::local {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DiskTest : public ControllerTest {
 protected:
  DiskTest() {
    keep_free_ = 100 << 20;
    room_ = {.bytes = 100 << 20};
    Restart();
  }

  // Until nothing more happens within a second.
  void PassTime() {
    for (int i = 0; i < 30; ++i) {
      clock_.seconds += 0.1;
      controller_->Turn();
    }
  }
  std::string Refusal() {
    try {
      Submit(kSmall);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kIo);
      return error.what();
    }
    return "";
  }
  std::string Trouble() { return controller_->disk().Trouble(); }
  void WriteFilesOf(JobId job, size_t bytes) {
    CreateDirectories(DirectoryOf(job));
    std::ofstream(DirectoryOf(job) + "/file") << std::string(bytes, 'x');
  }
};

TEST_F(DiskTest, NothingStartsOrIsAcceptedWhileLittleIsFree) {
  const JobId running = Submit(kSmall), filling = Submit(kSmall);
  Settle();
  ASSERT_EQ(State(filling), RecordState::kRunning);
  const JobId waiting = Submit("command: [a]\nresources: {gpu: 4}\nreplicas: 2");
  Settle();
  EXPECT_EQ(controller_->View(waiting).reason, "resources");

  room_->bytes -= 1 << 20;
  PassTime();
  EXPECT_THAT(Refusal(), HasSubstr("the disk of " + directory_.path() +
                                   " has 99MiB free, less than the 100MiB of disk.keep_free"));
  EXPECT_THAT(Refusal(), HasSubstr("renzan job cancel"));
  EXPECT_EQ(Refusal(), Trouble());
  // Whatever ends is recorded, and what runs can be stopped.
  End(running, EndedBy::kItself, 0);
  EXPECT_EQ(State(running), RecordState::kDone);
  EXPECT_EQ(controller_->Cancel(filling, ann_), RecordState::kStopping);
  End(filling, EndedBy::kRequest, 143);
  EXPECT_EQ(State(filling), RecordState::kCancelled);
  EXPECT_EQ(State(waiting), RecordState::kPending);
  EXPECT_EQ(controller_->View(waiting).reason, "disk nearly full");
  EXPECT_THAT(controller_->snapshot().Find(waiting)->held, HasSubstr("nearly full"));

  room_->bytes = 100 << 20;
  PassTime();
  EXPECT_EQ(Trouble(), "");
  EXPECT_EQ(State(waiting), RecordState::kRunning);
  EXPECT_EQ(Refusal(), "");
}

TEST_F(DiskTest, FilesMayRunOutToo) {
  room_->files = 999;
  EXPECT_THAT(Refusal(), HasSubstr("has room for only 999 more files"));
  room_->files = 1000;
  PassTime();
  EXPECT_EQ(Refusal(), "");
}

TEST_F(DiskTest, SaysWhichJobsUseMost) {
  std::vector<JobId> jobs;
  for (const size_t mib : {2, 5, 1, 3}) {
    jobs.push_back(Submit(kSmall));
    Settle();
    WriteFilesOf(jobs.back(), mib << 20);
  }
  PassTime();
  EXPECT_THAT(controller_->disk().largest(), IsEmpty()) << "nobody needs to know";
  room_->bytes = 0;
  PassTime();
  EXPECT_THAT(controller_->disk().largest(),
              ElementsAre(::testing::Pair(jobs[1], ::testing::Ge(5 << 20)),
                          ::testing::Pair(jobs[3], ::testing::Ge(3 << 20)),
                          ::testing::Pair(jobs[0], ::testing::Ge(2 << 20))));
  EXPECT_THAT(Trouble(), HasSubstr("; job 2 uses 5MiB, job 4 3MiB, job 1 2MiB. Cancel a job"));
}

TEST_F(DiskTest, JobsThatAreHeldForAnotherReasonStayHeld) {
  config_.queues["old"];
  config_.queues["default"];
  Restart();
  for (const NodeShare& share : {NodeShare{"own-0", 0}, NodeShare{"own-1", 0}})
    controller_->Cordon(share.node, operator_);
  const JobId job = Submit(std::string(kSmall) + "\nqueue: old");
  config_.queues.erase("old");
  Restart();
  Settle();
  const std::string held = controller_->snapshot().Find(job)->held;
  ASSERT_THAT(held, HasSubstr("old"));
  room_->bytes = 0;
  PassTime();
  EXPECT_EQ(controller_->snapshot().Find(job)->held, held);
  room_->bytes = 1 << 30;
  PassTime();
  EXPECT_EQ(controller_->snapshot().Find(job)->held, held);
}

}  // namespace
}  // namespace renzan::cluster::local
