// The same requirements for every backend: ranks as threads, real processes over Gloo, and under
// mpirun.

#include "renzan/comm/backends.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/process/free_port.h"
#include "renzan/comm/conformance.h"
#include "renzan/comm/testing.h"

namespace renzan {
namespace {

using testing::HasSubstr;

class Socket {
 public:
  // Bound to a free port of the loopback interface.
  Socket() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    CHECK(bind(fd_, reinterpret_cast<sockaddr*>(&address), length) == 0);
    CHECK(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    port_ = ntohs(address.sin_port);
  }
  ~Socket() { close(fd_); }
  void Listen() { CHECK(listen(fd_, 1) == 0); }
  int port() const { return port_; }

 private:
  int fd_, port_;
};

// A program under test, killed by the destructor if it still runs.
class Process {
 public:
  using Variables = std::map<std::string, std::string>;

  Process(const std::vector<std::string>& arguments, Variables variables,
          const std::string& output_path)
      : output_path_(output_path) {
    std::vector<std::string> environment = {"PATH=" + std::string(getenv("PATH"))};
    for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, output_path.c_str(),
                                     O_CREAT | O_WRONLY | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    std::vector<char*> argv = Pointers(arguments), envp = Pointers(environment);
    const int error = posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), envp.data());
    posix_spawn_file_actions_destroy(&actions);
    CHECK_MSG(error == 0, "cannot start {}", arguments[0]);
  }
  ~Process() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Process(const Process&) = delete;

  // The exit status, or 128 + signal; -1 if it hangs. Tests look at its output for what ended it,
  // not at the time, which is long on a busy machine.
  int Wait() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(100);
    int status = 0;
    while (waitpid(pid_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > deadline) return -1;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    pid_ = -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

  void WaitUntilStopped() const {
    int status = 0;
    CHECK(waitpid(pid_, &status, WUNTRACED) == pid_ && WIFSTOPPED(status));
  }
  void Continue() const { kill(pid_, SIGCONT); }

  std::string Output() const { return ReadFile(output_path_); }

 private:
  static std::vector<char*> Pointers(const std::vector<std::string>& strings) {
    std::vector<char*> pointers;
    for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
    pointers.push_back(nullptr);
    return pointers;
  }

  pid_t pid_ = -1;
  std::string output_path_;
};

class ProcessTest : public testing::Test {
 protected:
  // Worker `rank` of `world` over Gloo.
  Process& StartGloo(int rank, int world, int port, const std::vector<std::string>& mode,
                     const std::string& timeout = "30") {
    std::vector<std::string> arguments = {COMM_TEST_WORKER, "gloo"};
    arguments.insert(arguments.end(), mode.begin(), mode.end());
    processes_.push_back(
        std::make_unique<Process>(arguments,
                                  Process::Variables{{"RANK", std::to_string(rank)},
                                                     {"WORLD_SIZE", std::to_string(world)},
                                                     {"MASTER_ADDR", "127.0.0.1"},
                                                     {"MASTER_PORT", std::to_string(port)},
                                                     {"TEST_TIMEOUT", timeout}},
                                  directory_ / fmt::format("output{}", processes_.size())));
    return *processes_.back();
  }

  Process& StartMpi(int world, const std::string& backend, const std::vector<std::string>& mode,
                    const std::string& timeout = "30") {
    std::vector<std::string> arguments = {"mpirun",          "-n",        std::to_string(world),
                                          "--oversubscribe", "--bind-to", "none",
                                          COMM_TEST_WORKER,  backend};
    arguments.insert(arguments.end(), mode.begin(), mode.end());
    processes_.push_back(
        std::make_unique<Process>(arguments,
                                  Process::Variables{{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                                     {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                                                     {"HOME", directory_.path()},
                                                     {"MASTER_PORT", std::to_string(FreePort())},
                                                     {"TEST_TIMEOUT", timeout}},
                                  directory_ / fmt::format("output{}", processes_.size())));
    return *processes_.back();
  }

  TemporaryDirectory directory_;
  std::vector<std::unique_ptr<Process>> processes_;
};

class GlooTest : public ProcessTest {};

class MpiTest : public ProcessTest {
 protected:
  void SetUp() override {
    if (std::system("command -v mpirun > /dev/null 2>&1") != 0)
      GTEST_SKIP() << "mpirun is not installed (Debian: openmpi-bin)";
  }
};

int CountOf(const std::string& word, const std::string& text) {
  int count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(LocalTest, Conforms) {
  const auto communicator = MakeCommunicator("auto", Rendezvous{}, 1);
  EXPECT_STREQ(communicator->backend(), "local");
  CheckConformance(*communicator);
}

TEST(LocalTest, RejectsSeveralWorkersAndUnknownNames) {
  Rendezvous two;
  two.world_size = 2;
  EXPECT_THROW(MakeCommunicator("local", two, 1), Error);
  EXPECT_THROW(MakeCommunicator("pigeon", Rendezvous{}, 1), Error);
}

TEST(ThreadsTest, Conform) {
  for (int world : {1, 2, 3, 4, 7}) RunRanksAsThreads(world, CheckConformance);
}

TEST_F(GlooTest, Conforms) {
  for (int world : {1, 2, 3, 4}) {
    processes_.clear();
    const int port = FreePort();
    for (int rank = world - 1; rank >= 0; --rank) StartGloo(rank, world, port, {"conform"});
    for (auto& process : processes_) {
      EXPECT_EQ(process->Wait(), 0) << process->Output();
      EXPECT_THAT(process->Output(), HasSubstr("conforms"));
    }
  }
}

TEST_F(GlooTest, TheOthersNameADeadWorker) {
  const int port = FreePort();
  for (int rank = 0; rank < 3; ++rank) StartGloo(rank, 3, port, {"die", "1"});
  EXPECT_EQ(processes_[1]->Wait(), 128 + SIGKILL);
  for (size_t rank : {0u, 2u}) {
    EXPECT_EQ(processes_[rank]->Wait(), static_cast<int>(ErrorCode::kUnavailable));
    EXPECT_THAT(processes_[rank]->Output(), testing::ContainsRegex("B.*: lost worker .*1"));
  }
}

TEST_F(GlooTest, BuffersMayBeFreedWithTheirExchange) {
  const int port = FreePort();
  for (int rank = 0; rank < 2; ++rank) StartGloo(rank, 2, port, {"abandon", "1"}, "5");
  EXPECT_EQ(processes_[1]->Wait(), static_cast<int>(ErrorCode::kSoftware));
  EXPECT_THAT(processes_[1]->Output(), HasSubstr("abandoned its exchange"));
  EXPECT_EQ(processes_[0]->Wait(), static_cast<int>(ErrorCode::kUnavailable));
  // Gloo does not notice that a connection is reset in the middle of a message.
  EXPECT_THAT(processes_[0]->Output(),
              testing::ContainsRegex("lost worker 1|no answer from worker 1 within 5 s"));
}

TEST_F(GlooTest, NoWorkerEndsBeforeItsLastMessageHasArrived) {
  const int port = FreePort();
  for (int rank = 0; rank < 2; ++rank) StartGloo(rank, 2, port, {"stop", "0"});
  processes_[0]->WaitUntilStopped();
  while (processes_[1]->Output().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  // in which it would end if it failed
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  processes_[0]->Continue();
  for (auto& process : processes_) {
    EXPECT_EQ(process->Wait(), 0) << process->Output();
  }
}

TEST_F(GlooTest, AWorkerThatHangsIsNamedAfterTheDeadline) {
  const int port = FreePort();
  for (int rank = 0; rank < 2; ++rank) StartGloo(rank, 2, port, {"hang", "0"}, "2");
  EXPECT_EQ(processes_[1]->Wait(), static_cast<int>(ErrorCode::kUnavailable));
  EXPECT_THAT(processes_[1]->Output(), HasSubstr("no answer from worker 0 within 2 s"));
}

TEST_F(GlooTest, AMissingWorkerIsNamed) {
  const int port = FreePort();
  for (int rank : {0, 2}) StartGloo(rank, 3, port, {"conform"}, "2");
  for (auto& process : processes_) {
    EXPECT_EQ(process->Wait(), static_cast<int>(ErrorCode::kUnavailable));
  }
  EXPECT_THAT(processes_[0]->Output(), HasSubstr("worker 1 of 3 did not connect"));
}

TEST_F(GlooTest, WithoutWorkerZeroThereIsAnError) {
  Process& alone = StartGloo(1, 2, FreePort(), {"conform"}, "1");
  EXPECT_EQ(alone.Wait(), static_cast<int>(ErrorCode::kUnavailable));
  EXPECT_THAT(alone.Output(), HasSubstr("worker 1 cannot reach worker 0 at 127.0.0.1:"));
}

TEST_F(GlooTest, APortInUseIsNamed) {
  Socket taken;
  taken.Listen();
  Process& first = StartGloo(0, 2, taken.port(), {"conform"});
  EXPECT_EQ(first.Wait(), static_cast<int>(ErrorCode::kUnavailable));
  EXPECT_THAT(first.Output(),
              HasSubstr(fmt::format("port {} of 127.0.0.1: Address already in use", taken.port())));
  EXPECT_THAT(first.Output(), HasSubstr("set MASTER_PORT"));
}

TEST_F(GlooTest, WorkersThatDisagreeAreErrors) {
  const int port = FreePort();
  StartGloo(0, 3, port, {"conform"}, "2");
  Process& other_size = StartGloo(1, 2, port, {"conform"}, "2");
  EXPECT_EQ(other_size.Wait(), static_cast<int>(ErrorCode::kUsage));
  EXPECT_THAT(other_size.Output(), HasSubstr("WORLD_SIZE=2, worker 0 with WORLD_SIZE=3"));
  Process& one = StartGloo(1, 3, port, {"conform"}, "2");
  Process& twin = StartGloo(1, 3, port, {"conform"}, "2");
  EXPECT_THAT((std::vector{one.Wait(), twin.Wait()}),
              testing::Contains(static_cast<int>(ErrorCode::kUsage)));
  EXPECT_THAT(one.Output() + twin.Output(), HasSubstr("two workers were started with RANK=1"));
}

TEST_F(MpiTest, Conforms) {
  for (int world : {1, 2, 3, 4}) {
    Process& mpirun = StartMpi(world, "mpi", {"conform"});
    EXPECT_EQ(mpirun.Wait(), 0) << mpirun.Output();
    EXPECT_EQ(CountOf("conforms mpi", mpirun.Output()), world) << mpirun.Output();
  }
}

TEST_F(MpiTest, AutoIsMpiUnderMpirun) {
  Process& mpirun = StartMpi(2, "auto", {"conform"});
  EXPECT_EQ(mpirun.Wait(), 0);
  EXPECT_EQ(CountOf("conforms mpi", mpirun.Output()), 2) << mpirun.Output();
}

TEST_F(MpiTest, GlooWorksUnderMpirunToo) {
  Process& mpirun = StartMpi(2, "gloo", {"conform"});
  EXPECT_EQ(mpirun.Wait(), 0);
  EXPECT_EQ(CountOf("conforms gloo", mpirun.Output()), 2) << mpirun.Output();
}

TEST_F(MpiTest, ADeadWorkerEndsTheRun) {
  Process& mpirun = StartMpi(3, "mpi", {"die", "1"});
  EXPECT_GT(mpirun.Wait(), 0) << mpirun.Output();
  EXPECT_THAT(mpirun.Output(), testing::ContainsRegex("rank 1 .*signal 9"));
}

TEST_F(MpiTest, AWorkerThatHangsIsNamedAfterTheDeadline) {
  Process& mpirun = StartMpi(2, "mpi", {"hang", "0"}, "1");
  EXPECT_EQ(mpirun.Wait(), static_cast<int>(ErrorCode::kUnavailable)) << mpirun.Output();
  EXPECT_THAT(mpirun.Output(), HasSubstr("no answer from worker 0 within 1 s"));
}

TEST_F(MpiTest, AllBackendsReduceToTheSameBits) {
  Process& alone = StartMpi(1, "auto", {"reduce"});
  ASSERT_EQ(alone.Wait(), 0) << alone.Output();
  const std::string line = alone.Output();
  ASSERT_THAT(line, testing::StartsWith("sum "));
  for (int world : {2, 3, 4}) {
    for (const char* backend : {"mpi", "gloo"}) {
      Process& mpirun = StartMpi(world, backend, {"reduce"});
      EXPECT_EQ(mpirun.Wait(), 0) << mpirun.Output();
      EXPECT_EQ(CountOf(line, mpirun.Output()), world) << backend << "\n" << mpirun.Output();
    }
  }
}

}  // namespace
}  // namespace renzan
