#include "renzan/base/process/child.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "renzan/base/file/file.h"
#include "renzan/base/process/descriptor.h"
#include "renzan/base/process/free_port.h"
#include "renzan/base/process/pipe.h"
#include "renzan/base/process/process_end.h"
#include "renzan/base/process/process_table.h"
#include "renzan/base/process/signals.h"

namespace renzan {
namespace {

using Step = StartError::Step;

ChildOptions Shell(const std::string& script) {
  return {.argv = {"sh", "-c", script}, .environment = {"PATH=/usr/bin:/bin"}};
}

pid_t Start(const ChildOptions& options) { return std::get<pid_t>(StartChild(options)); }

ProcessEnd Wait(pid_t pid) {
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return EndOf(status);
}

// The child's stdout.
std::string OutputOf(ChildOptions options) {
  const TemporaryDirectory directory;
  const Descriptor output(
      open((directory / "output").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  options.stdout_fd = output.get();
  EXPECT_EQ(Wait(Start(options)).exit_code, 0);
  return ReadFile(directory / "output");
}

StartError ErrorOf(const ChildOptions& options) {
  const auto started = StartChild(options);
  const auto* failure = std::get_if<StartError>(&started);
  if (failure != nullptr) return *failure;
  ADD_FAILURE() << "it was started";
  Wait(std::get<pid_t>(started));
  return {};
}

TEST(StartChild, SetsLimitsAndNiceness) {
  ChildOptions options = Shell("ulimit -Sn; ulimit -Hn; ulimit -c; nice");
  options.limits = {{"nofile", {.soft = 100, .hard = 200}}, {"core", {.soft = 0, .hard = 0}}};
  options.niceness = 19;
  EXPECT_EQ(OutputOf(options), "100\n200\n0\n19\n");
}

TEST(StartChild, DescribesTheEnd) {
  EXPECT_EQ(DescribeEnd(Wait(Start(Shell("exit 3")))), "ended with exit status 3");
  const ProcessEnd killed = Wait(Start(Shell("kill -9 $$")));
  EXPECT_EQ(DescribeEnd(killed), "was killed by signal 9 (Killed)");
  EXPECT_EQ(killed.ShellStatus(), 137);
}

TEST(StartChild, AppliesTheOptions) {
  ChildOptions options = Shell("pwd; umask; echo $WORD; cat");  // stdin is empty
  options.environment.push_back("WORD=hello");
  options.working_directory = "/usr";
  options.umask = 027;
  EXPECT_EQ(OutputOf(options), "/usr\n0027\nhello\n");
}

TEST(StartChild, IsFoundInThePathOfItsOwnEnvironment) {
  ChildOptions options = Shell("true");
  options.environment = {"PATH=/nonexistent"};
  EXPECT_EQ(ErrorOf(options).error, ENOENT);
  options.program = "/bin/sh";
  EXPECT_EQ(Wait(Start(options)).exit_code, 0);
}

TEST(StartChild, SaysWhichStepFailed) {
  ChildOptions options = Shell("true");
  options.working_directory = "/nonexistent";
  EXPECT_EQ(ErrorOf(options).step, Step::kDirectory);
  EXPECT_EQ(ErrorOf(options).error, ENOENT);
  options = Shell("true");
  options.argv[0] = "/etc";
  EXPECT_EQ(ErrorOf(options).step, Step::kExec);
  EXPECT_EQ(ErrorOf(options).error, EACCES);
  options = Shell("true");
  options.stdout_fd = 1 << 20;
  EXPECT_EQ(ErrorOf(options).step, Step::kOutput);
}

TEST(StartChild, LeadsAGroupOrASession) {
  ChildOptions options = Shell("exec sleep 1000");
  for (const auto leads : {ChildOptions::Leads::kProcessGroup, ChildOptions::Leads::kSession}) {
    options.leads = leads;
    const pid_t pid = Start(options);
    EXPECT_EQ(getpgid(pid), pid);
    EXPECT_EQ(getsid(pid), leads == ChildOptions::Leads::kSession ? pid : getsid(0));
    kill(pid, SIGKILL);
    Wait(pid);
  }
}

TEST(StartChild, SetsSignalActionsAndMask) {
  std::signal(SIGUSR1, SIG_IGN);
  std::signal(SIGUSR2, SIG_IGN);
  ChildOptions options = Shell("kill -USR1 $$; kill -TERM $$; exit 5");
  options.signal_mask = SignalSet({SIGTERM});
  EXPECT_EQ(Wait(Start(options)).exit_code, 5) << "ignored and blocked";
  options.default_signals = SignalSet({SIGUSR1});
  EXPECT_EQ(Wait(Start(options)).signal, SIGUSR1);
  options = Shell("kill -USR2 $$; exit 5");
  options.default_signals = AllSignals();
  EXPECT_EQ(Wait(Start(options)).signal, SIGUSR2);
  std::signal(SIGUSR1, SIG_DFL);
  std::signal(SIGUSR2, SIG_DFL);
}

TEST(StartChild, DiesWithItsParentIfAsked) {
  for (const int death_signal : {SIGKILL, 0}) {
    const Pipe pipe = MakePipe();
    const OrphanReaper orphans;  // adopts and kills what the test starts
    const pid_t parent = fork();
    if (parent == 0) {
      ChildOptions options = Shell("exec sleep 30");
      options.death_signal = death_signal;
      const pid_t child = Start(options);
      _exit(write(pipe.write_end.get(), &child, sizeof(child)) == sizeof(child) ? 0 : 1);
    }
    EXPECT_EQ(Wait(parent).exit_code, 0);
    pid_t child = 0;
    ASSERT_EQ(read(pipe.read_end.get(), &child, sizeof(child)), ssize_t{sizeof(child)});
    if (death_signal == 0) {
      EXPECT_EQ(waitpid(child, nullptr, WNOHANG), 0) << "it still runs";
    } else {
      EXPECT_EQ(Wait(child).signal, death_signal);
    }
  }
}

TEST(KillChildren, KillsOrphansTooAndSparesTheGivenOnes) {
  const pid_t spared = Start(Shell("exec sleep 1000"));
  pid_t child = 0;
  {
    const OrphanReaper orphans;
    // An orphan in another session, and a zombie.
    EXPECT_EQ(Wait(Start(Shell("setsid sleep 1000 & true"))).exit_code, 0);
    child = Start(Shell("true"));
  }
  EXPECT_THAT(ChildrenOf(getpid()), testing::ElementsAre(spared));
  EXPECT_EQ(waitpid(child, nullptr, 0), -1);
  EXPECT_TRUE(KillChildren());
  EXPECT_THAT(ChildrenOf(getpid()), testing::IsEmpty());
}

TEST(FreePort, IsAValidPort) {
  EXPECT_GT(FreePort(), 0);
  EXPECT_LT(FreePort(), 65536);
}

}  // namespace
}  // namespace renzan
