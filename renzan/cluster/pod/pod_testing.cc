#include "renzan/cluster/pod/pod_testing.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "renzan/base/error.h"
#include "renzan/base/log.h"

namespace renzan::cluster::pod {

bool Eventually(const std::function<bool()>& condition) {
  using Clock = std::chrono::steady_clock;
  for (const auto end = Clock::now() + std::chrono::minutes(1); Clock::now() < end;) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

void WriteAnnotation(const std::string& volume, const std::string& checkpoint_request) {
  namespace fs = std::filesystem;
  static int updates = 0;
  const std::string data = "..2026_" + std::to_string(++updates);
  CreateDirectories(volume + "/" + data);
  WriteFileAtomically(volume + "/" + data + "/checkpoint-request", checkpoint_request);
  const fs::path current = volume + "/..data";
  const std::string before = fs::is_symlink(current) ? fs::read_symlink(current).string() : "";
  fs::create_symlink(data, volume + "/..data_tmp");
  fs::rename(volume + "/..data_tmp", current);
  if (!fs::is_symlink(volume + "/checkpoint-request"))
    fs::create_symlink("..data/checkpoint-request", volume + "/checkpoint-request");
  if (!before.empty()) fs::remove_all(volume + "/" + before);
}

TestPod::TestPod(const std::string& script) {
  options.command = {"sh", "-c", "cd " + directory() + "; " + script};
  Set("PATH", "/usr/bin:/bin");
  Set("RENZAN_POD_INFO", volume());
  Set("RENZAN_TERMINATION_LOG", directory_ / "termination-log");
  WriteFileAtomically(directory_ / "termination-log", "");  // as the kubelet does
  options.resolve = [](const std::string&) { return ""; };
  options.seconds_between_looks = 0.05;
}

TestPod::~TestPod() {
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);  // and with it the command
  waitpid(pid_, nullptr, 0);
}

void TestPod::Set(const std::string& variable, const std::string& value) {
  options.environment.push_back(variable + "=" + value);
}

void TestPod::Start() {
  const int errors =
      open((directory_ / "stderr").c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  ASSERT_GE(errors, 0);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(errors, STDERR_FILENO);
    int status = -1;
    try {
      status = PodRun(options);
    } catch (const Error& error) {
      LogError("{}", error.what());
      status = error.exit_status();
    }
    _exit(status);
  }
  close(errors);
  ASSERT_GT(pid_, 0);
}

void TestPod::Signal(int signal) const { EXPECT_EQ(kill(pid_, signal), 0); }

ProcessEnd TestPod::WaitForEnd() {
  int status = 0;
  const bool ended = Eventually([&] { return waitpid(pid_, &status, WNOHANG) == pid_; });
  EXPECT_TRUE(ended) << "it did not end";
  if (!ended) return {};
  pid_ = 0;
  return EndOf(status);
}

std::string TestPod::WaitForFile(const std::string& name) const {
  std::string text;
  const bool written = Eventually([&] {
    if (FileExists(directory_ / name)) text = ReadFile(directory_ / name);
    return text.ends_with('\n');
  });
  EXPECT_TRUE(written) << name << " did not appear; stderr: " << Stderr();
  return text;
}

std::string TestPod::Stderr() const { return ReadFile(directory_ / "stderr"); }

std::string TestPod::TerminationLog() const { return ReadFile(directory_ / "termination-log"); }

}  // namespace renzan::cluster::pod
