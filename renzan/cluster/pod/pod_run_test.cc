// Real commands under PodRun().

#include "renzan/cluster/pod/pod_run.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/process/descriptor.h"
#include "renzan/base/process/process_table.h"
#include "renzan/cluster/pod/pod_testing.h"

namespace renzan::cluster::pod {
namespace {

using testing::HasSubstr;
using testing::Not;

// Creates the file `ready`, then waits; traps come before it.
const std::string kReadyAndWait =
    "echo up > ready.tmp; mv ready.tmp ready; while :; do sleep 0.01; done";

nlohmann::json LastWords(const TestPod& pod) { return nlohmann::json::parse(pod.TerminationLog()); }

TEST(PodRun, EndsWithTheCommandsStatus) {
  TestPod exits("echo trouble >&2; exit 42");
  exits.Start();
  EXPECT_EQ(exits.WaitForEnd().exit_code, 42);
  EXPECT_EQ(exits.TerminationLog(), "{\"exit_code\":42,\"message\":\"trouble\"}\n");

  TestPod dies("kill -SEGV $$");
  dies.Start();
  EXPECT_EQ(dies.WaitForEnd().exit_code, 128 + SIGSEGV);
  EXPECT_EQ(LastWords(dies).at("signal"), "SIGSEGV");
  EXPECT_EQ(LastWords(dies).at("exit_code"), 128 + SIGSEGV);

  TestPod succeeds("echo words >&2");
  succeeds.Start();
  EXPECT_EQ(succeeds.WaitForEnd().exit_code, 0);
  EXPECT_EQ(LastWords(succeeds).at("message"), "ended with exit status 0");
}

TEST(PodRun, UploadsWhatTheCommandLeaves) {
  TestPod pod("echo words; echo trouble >&2; mkdir out; echo 1 > out/a; exit 3");
  pod.Set("RENZAN_UPLOAD_TO", "s3://b/p");
  pod.Set("RENZAN_ARTIFACTS", pod / "out");
  pod.Set("RENZAN_ATTEMPT", "2");
  const Descriptor out(::open((pod / "stdout").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  pod.options.stdout_fd = out.get();
  pod.options.upload = [&](const std::string& path, const std::string& to, const auto&) {
    std::ofstream(pod / "uploads", std::ios::app)
        << to << (std::filesystem::is_directory(path) ? " directory" : " " + ReadFile(path))
        << "\n";
  };
  pod.Start();
  EXPECT_EQ(pod.WaitForEnd().exit_code, 3);
  EXPECT_EQ(ReadFile(pod / "stdout"), "words\n");
  EXPECT_EQ(LastWords(pod).at("message"), "trouble");
  const std::string uploads = ReadFile(pod / "uploads");
  EXPECT_THAT(uploads, HasSubstr("s3://b/p/attempt-2/worker-0.log "));
  EXPECT_THAT(uploads, HasSubstr("words\n"));
  EXPECT_THAT(uploads, HasSubstr("trouble\n"));
  EXPECT_THAT(uploads, HasSubstr("s3://b/p/run directory\ns3://b/p/artifacts directory\n"));
}

TEST(PodRun, AnUploadEndsBeforeTheContainerIsKilled) {
  TestPod pod("exit 75");
  pod.Set("RENZAN_UPLOAD_TO", "s3://b/p");
  pod.Set("RENZAN_GRACE_SECONDS", "3");
  pod.options.upload = [&](const std::string&, const std::string& to, const auto& stop) {
    std::ofstream(pod / "uploading") << "yes\n";
    while (!stop()) ::usleep(1000);
    Fail(ErrorCode::kTempFail, "{}: no more time", to);
  };
  pod.Start();
  pod.WaitForFile("uploading");
  pod.Signal(SIGTERM);
  EXPECT_EQ(pod.WaitForEnd().exit_code, 75);
  EXPECT_THAT(pod.Stderr(), HasSubstr("no more time"));
}

TEST(PodRun, APodThatIsStoppedBeforeItsCommandUploadsNothing) {
  TestPod pod("exit 0");
  pod.Set("RENZAN_UPLOAD_TO", "s3://b/p");
  pod.Set("WORLD_SIZE", "2");
  pod.Set("MASTER_ADDR", "nowhere");
  pod.options.master.limit_seconds = 60;
  pod.options.resolve = [&](const std::string&) {
    std::ofstream(pod / "resolving") << "yes\n";
    return std::string("unknown");
  };
  pod.options.upload = [&](const std::string&, const std::string&, const auto&) {
    std::ofstream(pod / "uploaded") << "yes\n";
  };
  pod.Start();
  pod.WaitForFile("resolving");
  pod.Signal(SIGTERM);
  EXPECT_EQ(pod.WaitForEnd().exit_code, 75);
  EXPECT_FALSE(FileExists(pod / "uploaded"));
}

// What a successful command has made must not be lost silently.
TEST(PodRun, OutputThatCannotBeUploadedIsAFailure) {
  for (const int code : {0, 42}) {
    TestPod pod(fmt::format("exit {}", code));
    pod.Set("RENZAN_UPLOAD_TO", "s3://b/p");
    pod.options.upload = [](const std::string&, const std::string& to, const auto&) {
      Fail(ErrorCode::kNoPermission, "{}: not allowed", to);
    };
    pod.Start();
    EXPECT_EQ(pod.WaitForEnd().exit_code,
              code == 0 ? static_cast<int>(ErrorCode::kNoPermission) : code);
    EXPECT_THAT(pod.Stderr(), HasSubstr("not allowed"));
    EXPECT_THAT(pod.TerminationLog(), HasSubstr(code == 0 ? "not allowed" : "42"));
  }
}

TEST(PodRun, ACommandThatCannotBeStartedHasAShellsStatus) {
  TestPod missing("");
  missing.options.command = {"trian", "x"};
  missing.Start();
  EXPECT_EQ(missing.WaitForEnd().exit_code, 127);
  EXPECT_THAT(missing.Stderr(), HasSubstr("error: program 'trian' is not in PATH"));
  EXPECT_EQ(LastWords(missing).at("exit_code"), 127);
  EXPECT_THAT(LastWords(missing).at("message"), HasSubstr("'trian' is not in PATH"));

  TestPod text("");
  text.options.command = {text / "text"};
  WriteFileAtomically(text / "text", "no program");
  text.Start();
  EXPECT_EQ(text.WaitForEnd().exit_code, 126);
  EXPECT_THAT(text.Stderr(), HasSubstr("Permission denied"));
}

TEST(PodRun, ReportsItsOwnErrors) {
  TestPod pod("exit 1");
  pod.Set("WORLD_SIZE", "zwei");
  pod.Start();
  EXPECT_EQ(pod.WaitForEnd().exit_code, 64);
  EXPECT_THAT(LastWords(pod).at("message"), HasSubstr("WORLD_SIZE"));
}

TEST(PodRun, CompletesTheEnvironment) {
  TestPod pod("pwd > $RENZAN_RUN_DIR/x; ls -ld $RENZAN_RUN_DIR > run_dir; env > env; exit 3");
  pod.Set("TMPDIR", pod.directory());
  pod.Set("RENZAN_GRACE_SECONDS", "30");
  pod.options.grace_seconds = 12;
  ASSERT_EQ(setenv("TMPDIR", pod.directory().c_str(), 1), 0);
  pod.Start();
  unsetenv("TMPDIR");
  EXPECT_EQ(pod.WaitForEnd().exit_code, 3);
  const std::string environment = pod.WaitForFile("env");
  EXPECT_THAT(environment, HasSubstr("\nRENZAN_GRACE_SECONDS=12\n"));
  EXPECT_THAT(environment, Not(HasSubstr("RENZAN_GRACE_SECONDS=30")));
  EXPECT_THAT(pod.WaitForFile("run_dir"), testing::StartsWith("drwx------"));
  const size_t begin = environment.find("RENZAN_RUN_DIR=") + 15;
  const std::string run_dir = environment.substr(begin, environment.find('\n', begin) - begin);
  EXPECT_THAT(run_dir, testing::StartsWith(pod.directory()));
  EXPECT_FALSE(FileExists(run_dir));  // it is gone with the command
}

TEST(PodRun, CreatesTheRunDirectoryAndRemovesAnOldNotice) {
  TestPod pod("ls $RENZAN_RUN_DIR > listed; echo end >> listed");
  pod.Set("RENZAN_RUN_DIR", pod / "a/run");
  CreateDirectories(pod / "a/run");
  WriteFileAtomically(pod / "a/run/stop.json", "of an earlier attempt");
  pod.Start();
  EXPECT_EQ(pod.WaitForEnd().exit_code, 0);
  EXPECT_EQ(pod.WaitForFile("listed"), "end\n");
}

TEST(PodRun, WritesTheDeadlineBeforeItPassesSigtermOn) {
  TestPod pod("trap 'cat $RENZAN_RUN_DIR/stop.json > heard; exit 75' TERM; " + kReadyAndWait);
  CreateDirectories(pod / "real");
  ASSERT_EQ(symlink((pod / "real").c_str(), (pod / "run").c_str()), 0);
  pod.Set("RENZAN_RUN_DIR", pod / "run");
  pod.Set("RENZAN_GRACE_SECONDS", "600");
  pod.Start();
  pod.WaitForFile("ready");
  const double before = SystemClock().UnixSeconds();
  pod.Signal(SIGTERM);
  EXPECT_EQ(pod.WaitForEnd().exit_code, 75);
  const auto notice = nlohmann::json::parse(pod.WaitForFile("heard"));
  EXPECT_EQ(notice.at("grace_seconds"), 600);
  EXPECT_GE(notice.at("deadline"), before + 600 - 0.001);  // it has milliseconds
  EXPECT_LE(notice.at("deadline"), SystemClock().UnixSeconds() + 600 + 0.001);
}

TEST(PodRun, ASecondSigtermExtendsNothingAndEndsNobodyEarly) {
  TestPod pod("trap 'cat $RENZAN_RUN_DIR/stop.json >> heard; echo 1 >> count' TERM; " +
              std::string("echo up > ready; while ! [ -e last ]; do sleep 0.01; done; ") +
              "trap - TERM; echo up > defenceless; while ! [ -e go ]; do sleep 0.01; done; exit 3");
  pod.Set("RENZAN_GRACE_SECONDS", "600");
  pod.Start();
  pod.WaitForFile("ready");
  pod.Signal(SIGTERM);
  ASSERT_TRUE(Eventually([&] { return FileExists(pod / "count"); }));
  pod.Signal(SIGTERM);
  ASSERT_TRUE(Eventually([&] { return ReadFile(pod / "count") == "1\n1\n"; }));
  const std::string heard = ReadFile(pod / "heard");
  EXPECT_EQ(heard.substr(0, heard.size() / 2), heard.substr(heard.size() / 2));
  WriteFileAtomically(pod / "last", "");
  pod.WaitForFile("defenceless");
  pod.Signal(SIGTERM);
  pod.Signal(SIGUSR1);  // is taken after it, and answered
  ASSERT_TRUE(Eventually([&] { return pod.Stderr().find("SIGUSR1") != std::string::npos; }));
  WriteFileAtomically(pod / "go", "");
  EXPECT_EQ(pod.WaitForEnd().exit_code, 3);
}

TEST(PodRun, PassesSignalsOn) {
  for (const auto& [number, name] : {std::pair(SIGINT, "INT"),
                                     {SIGHUP, "HUP"},
                                     {SIGUSR2, "USR2"},
                                     {SIGUSR1, "USR1"},
                                     {SIGTERM, "TERM"}}) {
    TestPod pod(std::string("trap 'echo heard > heard; exit 7' ") + name + "; " + kReadyAndWait);
    pod.Start();
    pod.WaitForFile("ready");
    pod.Signal(number);
    EXPECT_EQ(pod.WaitForEnd().exit_code, 7) << name;
    EXPECT_EQ(pod.WaitForFile("heard"), "heard\n");
  }
}

// As the supervisor does on one machine.
TEST(PodRun, SignalsReachTheCommandAndNotItsChildren) {
  TestPod pod(
      "sh -c 'trap \"echo child > child\" TERM USR2; echo up > child-ready; "
      "while :; do sleep 0.01; done' & while ! [ -e child-ready ]; do sleep 0.01; done; "
      "trap 'echo heard > heard' USR2; trap 'exit 75' TERM; " +
      kReadyAndWait);
  pod.Start();
  pod.WaitForFile("ready");
  pod.Signal(SIGUSR2);
  pod.WaitForFile("heard");
  pod.Signal(SIGTERM);
  EXPECT_EQ(pod.WaitForEnd().exit_code, 75);
  EXPECT_FALSE(FileExists(pod / "child"));
}

TEST(PodRun, ASignalEndsACommandThatDoesNotHandleIt) {
  TestPod pod("echo up > ready; exec sleep 1000");
  pod.Start();
  pod.WaitForFile("ready");
  pod.Signal(SIGTERM);
  EXPECT_EQ(pod.WaitForEnd().exit_code, 128 + SIGTERM);
  EXPECT_EQ(LastWords(pod).at("signal"), "SIGTERM");
}

TEST(PodRun, ReapsOrphans) {
  TestPod pod("sh -c '(while ! [ -e go ]; do sleep 0.01; done) & echo $! > orphan'; " +
              kReadyAndWait);
  pod.Start();
  pod.WaitForFile("ready");
  const pid_t orphan = std::stoi(pod.WaitForFile("orphan"));
  EXPECT_EQ(kill(orphan, 0), 0);
  WriteFileAtomically(pod / "go", "");
  EXPECT_TRUE(Eventually([&] { return kill(orphan, 0) != 0; }));  // not even as a zombie
  pod.Signal(SIGTERM);
  EXPECT_EQ(pod.WaitForEnd().signal, 0);
}

TEST(PodRun, LeavesNoProcessBehind) {
  TestPod pod("setsid sleep 1000 >/dev/null 2>&1 & echo $! > left; echo words >&2; exit 4");
  pod.Start();
  EXPECT_EQ(pod.WaitForEnd().exit_code, 4);
  EXPECT_FALSE(IsAlive(std::stoi(pod.WaitForFile("left"))));
}

TEST(PodRun, SendsOneSigusr1PerChangedAnnotation) {
  for (const double seconds_between_looks : {0.05, 1e6}) {  // by polling, and by inotify
    TestPod pod("trap 'echo saved >> saved' USR1; trap 'exit 75' TERM; " + kReadyAndWait);
    pod.options.seconds_between_looks = seconds_between_looks;
    WriteAnnotation(pod.volume(), "monday");
    pod.Start();
    pod.WaitForFile("ready");
    std::string expected;
    for (const char* request : {"tuesday", "wednesday", "thursday"}) {
      WriteAnnotation(pod.volume(), request);
      expected += "saved\n";
      ASSERT_TRUE(Eventually([&] {
        return FileExists(pod / "saved") && ReadFile(pod / "saved").size() >= expected.size();
      }));
      WriteAnnotation(pod.volume(), request);  // nothing new
      EXPECT_EQ(ReadFile(pod / "saved"), expected);
    }
    pod.Signal(SIGTERM);
    EXPECT_EQ(pod.WaitForEnd().exit_code, 75);
    EXPECT_EQ(ReadFile(pod / "saved"), expected);
  }
}

TEST(PodRun, SendsNoSigusr1ToACommandThatDoesNotHandleIt) {
  TestPod pod("echo up > ready; while ! [ -e go ]; do sleep 0.01; done; exit 3");
  pod.Start();
  pod.WaitForFile("ready");
  WriteAnnotation(pod.volume(), "now");
  ASSERT_TRUE(Eventually([&] { return pod.Stderr().find("SIGUSR1") != std::string::npos; }));
  WriteFileAtomically(pod / "go", "");
  EXPECT_EQ(pod.WaitForEnd().exit_code, 3);
}

TEST(PodRun, StartsTheCommandWhenTheMastersNameResolves) {
  TestPod pod("cp lookups seen; echo end >> seen");
  pod.Set("RANK", "1");
  pod.Set("WORLD_SIZE", "2");
  pod.Set("MASTER_ADDR", "towers-0");
  pod.options.master.seconds_between_lookups = 0.01;
  pod.options.resolve = [&](const std::string& name) -> std::string {
    WriteFileAtomically(pod / "lookups", name + "\n");
    return FileExists(pod / "published") ? "" : "unknown name";
  };
  pod.Start();
  ASSERT_TRUE(Eventually([&] { return pod.Stderr().find("towers-0") != std::string::npos; }));
  EXPECT_FALSE(FileExists(pod / "seen"));
  WriteFileAtomically(pod / "published", "");
  EXPECT_EQ(pod.WaitForEnd().exit_code, 0);
  EXPECT_EQ(pod.WaitForFile("seen"), "towers-0\nend\n");
}

TEST(PodRun, AMasterWithoutANameIsAnError) {
  TestPod pod("exit 1");
  pod.Set("WORLD_SIZE", "2");
  pod.Set("MASTER_ADDR", "towers-0");
  pod.options.master = {.limit_seconds = 0.05, .seconds_between_lookups = 0.01};
  pod.options.resolve = [](const std::string&) { return "unknown name"; };
  pod.Start();
  EXPECT_EQ(pod.WaitForEnd().exit_code, 69);
  EXPECT_THAT(pod.Stderr(), HasSubstr("MASTER_ADDR 'towers-0' does not resolve"));
  EXPECT_THAT(LastWords(pod).at("message"), HasSubstr("does not resolve"));
}

TEST(PodRun, NobodyWaitsForTheMasterOfOneWorker) {
  for (const char* world_size : {"1", "", "2"}) {
    TestPod pod("exit 5");
    pod.Set("WORLD_SIZE", world_size);
    pod.Set("MASTER_ADDR", "towers-0");
    if (world_size == std::string("2")) pod.options.master.limit_seconds = 0;
    pod.options.resolve = [](const std::string&) { return "unknown name"; };
    pod.Start();
    EXPECT_EQ(pod.WaitForEnd().exit_code, 5);
  }
}

TEST(PodRun, AStopBeforeTheCommandStartsIsNoFailure) {
  for (const auto& [number, status] : {std::pair(SIGTERM, 75), {SIGHUP, 75}, {SIGINT, 130}}) {
    TestPod pod("echo started > started");
    pod.Set("WORLD_SIZE", "2");
    pod.Set("MASTER_ADDR", "towers-0");
    pod.options.resolve = [](const std::string&) { return "unknown name"; };
    pod.Start();
    ASSERT_TRUE(Eventually([&] { return !pod.Stderr().empty(); }));
    pod.Signal(number);
    EXPECT_EQ(pod.WaitForEnd().exit_code, status);
    EXPECT_FALSE(FileExists(pod / "started"));
    EXPECT_EQ(LastWords(pod).at("exit_code"), status);
    EXPECT_THAT(LastWords(pod).at("message"), HasSubstr("before the command started"));
  }
}

TEST(PodRun, PassesStderrOnUnchanged) {
  // More than a pipe holds, every byte, without a line end; and a writer that outlives the command.
  TestPod pod("cat bytes >&2; (sleep 0.05; printf late >&2; sleep 1000) & exit 9");
  std::string bytes;
  for (int i = 0; i < 1'000'000; ++i) bytes += static_cast<char>((i % 65'521 * 7919) >> 5);
  WriteFileAtomically(pod / "bytes", bytes);
  pod.Start();
  EXPECT_EQ(pod.WaitForEnd().exit_code, 9);
  const std::string got = pod.Stderr();
  EXPECT_TRUE(got == bytes || got == bytes + "late") << got.size();
}

TEST(PodRun, PassesStderrOnWithoutDelay) {
  TestPod pod("printf half >&2; echo up > ready; while ! [ -e go ]; do sleep 0.01; done");
  pod.Start();
  pod.WaitForFile("ready");
  EXPECT_TRUE(Eventually([&] { return pod.Stderr() == "half"; }));
  WriteFileAtomically(pod / "go", "");
  EXPECT_EQ(pod.WaitForEnd().exit_code, 0);
}

TEST(PodRun, ACommandSeesATerminalAsOne) {
  int controller = -1, terminal = -1;
  ASSERT_EQ(openpty(&controller, &terminal, nullptr, nullptr, nullptr), 0);
  const Descriptor keep(controller), end(terminal);
  TestPod pod("if [ -t 2 ]; then exit 7; fi");
  pod.options.stderr_fd = terminal;
  pod.Start();
  EXPECT_EQ(pod.WaitForEnd().exit_code, 7);
}

TEST(PodRun, SaysWhatTheStatusSays) {
  const std::string status = R"({"state": "failed", "step": 7, "steps": 100})";
  TestPod pod("echo '" + status +
              "' > $RENZAN_RUN_DIR/status.json; echo 'error: lost' >&2; exit 69");
  pod.Start();
  EXPECT_EQ(pod.WaitForEnd().exit_code, 69);
  EXPECT_EQ(LastWords(pod).at("message"), "failed at step 7 of 100: error: lost");

  TestPod again("echo 'error: early' >&2; exit 65");
  CreateDirectories(again / "run");
  WriteFileAtomically(again / "run/status.json", status);  // of an earlier attempt
  again.Set("RENZAN_RUN_DIR", again / "run");
  again.Start();
  EXPECT_EQ(again.WaitForEnd().exit_code, 65);
  EXPECT_EQ(LastWords(again).at("message"), "error: early");
}

TEST(PodRun, NeedsNoTerminationLog) {
  TestPod pod("echo words >&2; exit 3");
  ASSERT_EQ(unlink((pod / "termination-log").c_str()), 0);
  pod.Start();
  EXPECT_EQ(pod.WaitForEnd().exit_code, 3);
  EXPECT_EQ(pod.Stderr(), "words\n");
  EXPECT_FALSE(FileExists(pod / "termination-log"));
}

}  // namespace
}  // namespace renzan::cluster::pod
