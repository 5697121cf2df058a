#include "renzan/cluster/local/supervisor/attempt_testing.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

namespace renzan::cluster::local {

bool Eventually(const std::function<bool()>& condition) {
  using Clock = std::chrono::steady_clock;
  for (const auto end = Clock::now() + std::chrono::minutes(1); Clock::now() < end;) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

TestAttempt::TestAttempt(const std::string& script)
    : directory_(temporary_ / "jobs/1/attempt-0"), work_(temporary_ / "work") {
  CreateDirectories(work_);
  // For tests with other users.
  chmod(temporary_.path().c_str(), 0755);
  chmod(work_.c_str(), 0777);
  plan.command = {"/bin/sh", "-c", script};
  plan.working_directory = work_;
  plan.run_dir = work_ + "/run";
  plan.checkpoint_dir = work_ + "/checkpoints";
  plan.uid = geteuid();
  plan.gid = getegid();
  AddWorker("n0", 0);
}

TestAttempt::~TestAttempt() {
  const AttemptReport report = Report();
  if (report.supervisor > 0 && !report.end) RequestStop(directory_, 0);
  EXPECT_TRUE(Eventually([&] { return Report().supervisor == 0; }));
  if (Report().phase == AttemptPhase::kLost) CleanUpAttempt(directory_);
}

void TestAttempt::AddWorker(const std::string& node, int local_rank) {
  plan.workers.push_back({.node = node, .local_rank = local_rank});
}

pid_t TestAttempt::Start() { return StartAttempt(RENZAN_SUPERVISOR, directory_, plan); }

AttemptEnd TestAttempt::WaitForEnd() const {
  const bool ended = Eventually([&] { return Report().end.has_value(); });
  EXPECT_TRUE(ended) << "the attempt did not end";
  if (ended) return *Report().end;
  AttemptEnd none;
  none.workers.resize(plan.workers.size());
  return none;
}

std::string TestAttempt::WaitForFile(const std::string& name) const {
  const std::string path = work_ + "/" + name;
  std::string text;
  const bool written = Eventually([&] {
    if (FileExists(path)) text = ReadFile(path);
    return text.ends_with('\n');
  });
  EXPECT_TRUE(written) << path << " did not appear";
  return text;
}

std::string TestAttempt::Log(int rank) const {
  return ReadFile(directory_ + "/worker-" + std::to_string(rank) + ".log");
}

}  // namespace renzan::cluster::local
