#include "renzan/launch/mpirun_output.h"

#include <gtest/gtest.h>

namespace renzan {
namespace {

constexpr char kRow[] = "------------------------------------------------------------------\n";

TEST(MpirunOutputTest, PassesLinesOnAndReadsNotices) {
  MpirunOutput output;
  std::string shown = output.Feed("step 1\nste");
  shown += output.Feed("p 2\n");
  shown += output.Feed(std::string(kRow) + "mpirun noticed that process rank 1 with PID 0 on node");
  shown += output.Feed(" vm exited on signal 9 (Killed).\n" + std::string(kRow) + "after\nno end");
  shown += output.Finish();
  EXPECT_EQ(shown, "step 1\nstep 2\nafter\nno end");
  ASSERT_TRUE(output.worker_end());
  EXPECT_EQ(output.worker_end()->rank, 1);
  EXPECT_EQ(output.worker_end()->signal, 9);
}

TEST(MpirunOutputTest, ReadsExitStatusAndKeepsOtherNotices) {
  MpirunOutput output;
  const std::string other = std::string(kRow) + "There are not enough slots\n" + kRow;
  EXPECT_EQ(output.Feed(other), other);
  EXPECT_EQ(output.Feed(std::string(kRow) +
                        "Primary job  terminated normally, but 1 process returned\na non-zero exit "
                        "code. Per user-direction, the job has been aborted.\n" +
                        kRow),
            "");
  EXPECT_EQ(output.Feed(std::string(kRow) +
                        "mpirun detected that one or more processes exited with non-zero status\n\n"
                        "  Process name: [[21489,1],2]\n  Exit code:    69\n" +
                        kRow),
            "");
  ASSERT_TRUE(output.worker_end());
  EXPECT_EQ(output.worker_end()->rank, 2);
  EXPECT_EQ(output.worker_end()->exit_status, 69);
  EXPECT_EQ(output.worker_end()->signal, 0);
}

TEST(MpirunOutputTest, ReadsNoticesOfOpenMpi5) {
  MpirunOutput output;
  output.Feed(std::string(kRow) +
              "prterun detected that one or more processes exited with non-zero status\n\n"
              "   Process name: [prterun-host-985@1,3] Exit code:    70\n" +
              kRow);
  ASSERT_TRUE(output.worker_end());
  EXPECT_EQ(output.worker_end()->rank, 3);
  EXPECT_EQ(output.worker_end()->exit_status, 70);
}

TEST(MpirunOutputTest, ANoticeWithoutNumbersIsNoEnd) {
  MpirunOutput output;
  for (const char* text : {"process rank x exited on signal 9\n", "process rank 1 exited on node\n",
                           "Process name: [none]\nExit code: 1\n", "Process name: [a,1]\n"}) {
    const std::string notice = std::string(kRow) + text + kRow;
    EXPECT_EQ(output.Feed(notice), notice);
    EXPECT_FALSE(output.worker_end()) << text;
  }
}

TEST(MpirunOutputTest, AnUnfinishedNoticeIsShown) {
  MpirunOutput output;
  const std::string text = std::string(kRow) + "No such file\n";
  EXPECT_EQ(output.Feed(text), "");
  EXPECT_EQ(output.Finish(), text);
}

}  // namespace
}  // namespace renzan
