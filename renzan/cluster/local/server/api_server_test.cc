#include "renzan/cluster/local/server/api_server.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "renzan/base/file/file.h"
#include "renzan/cluster/core/engine/record_state.h"
#include "renzan/cluster/local/server/api_server_testing.h"
#include "renzan/cluster/local/server/log_stream.h"

namespace renzan::cluster::local {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

class ApiServerTest : public ServedApi {};

TEST_F(ApiServerTest, AcceptsAJobAndShowsIt) {
  const std::string answer = Submit("command: [sleep, 1]\nresources: {gpu: 2}");
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 201"));
  EXPECT_EQ(BodyOf(answer)["id"], 1);
  const Json job = BodyOf(Ask(socket_, "GET", "/v1/jobs/1"));
  EXPECT_EQ(job["name"], "sleep");
  EXPECT_EQ(job["resources"]["gpu"], 2);
  EXPECT_THAT(job["spec"].get<std::string>(), HasSubstr("working_directory: /tmp"));
  EXPECT_EQ(job["manifest"]["sha256"].get<std::string>().size(), 64u);
  EXPECT_EQ(BodyOf(Ask(socket_, "GET", "/v1/jobs/1?brief=1")).size(), 5u);
  EXPECT_EQ(BodyOf(Ask(socket_, "GET", "/v1/jobs?user=nobody-here"))["jobs"].size(), 0u);
  EXPECT_EQ(BodyOf(Ask(socket_, "GET", "/v1/jobs"))["jobs"].size(), 1u);
  EXPECT_EQ(BodyOf(Ask(socket_, "GET", "/v1/nodes"))["nodes"][0]["capacity"]["gpu"], 4);
  const Json status = BodyOf(Ask(socket_, "GET", "/v1/status"));
  EXPECT_EQ(status["nodes"]["ready"], 1);
  EXPECT_EQ(status["queues"][0]["used"]["gpu"], 2);
  EXPECT_EQ(status["queues"][0]["borrowed"]["gpu"], 0) << "no queue is guaranteed any";
  EXPECT_EQ(status["queues"][0]["removed"], false);
  EXPECT_EQ(BodyOf(Ask(socket_, "GET", "/v1/usage"))["jobs"].size(), 1u);
  EXPECT_EQ(BodyOf(Ask(socket_, "GET", "/v1/snapshot"))["jobs"].size(), 1u);
  const Json run_time =
      BodyOf(Ask(socket_, "POST", "/v1/run-time", R"({"queue": "q", "name": "train", "size": 8})"));
  EXPECT_EQ(run_time["quantiles_ms"], Json::parse("[0, 0, 0, 0, 0]")) << "nothing has ended";
}

TEST_F(ApiServerTest, ReportsErrorsWithCodes) {
  struct Case {
    std::string answer;
    const char* status;
    int code;
  };
  Submit("command: [a]");
  const Case cases[] = {
      {Submit("commandd: [a]"), "400", 78},
      {Submit("command: [a]\nqueue: nowhere"), "404", 66},
      {Submit("command: [a]\nreplicas: 10"), "400", 78},
      {Ask(socket_, "POST", "/v1/jobs", "{"), "400", 64},
      {Ask(socket_, "POST", "/v1/run-time", R"({"queue": "q", "name": 3})"), "400", 64},
      {Ask(socket_, "POST", "/v1/jobs", std::string(5 << 20, 'x')), "413", 64},
      {Submit("command: [a]\nenvironment: {A: " + std::string(300 << 10, 'x') + "}"), "400", 64},
      {Ask(socket_, "GET", "/v1/jobs/99"), "404", 66},
      {Ask(socket_, "GET", "/v1/jobs/1x"), "400", 64},
      {Ask(socket_, "GET", "/v1/jobs/1/logs?attempt=7"), "404", 66},
      {Ask(socket_, "POST", "/v1/nodes/nope/fail", "{}"), "404", 66},
      {Ask(socket_, "POST", "/v1/nodes/own-0/drain", R"({"notice_seconds": -1})"), "400", 64},
      {Ask(socket_, "POST", "/v1/users/ann/override", "{}"), "400", 64},
      {Ask(socket_, "GET", "/v2/jobs"), "404", 66},
      {Ask(socket_, "GET", "/v1/jobs?queue=defualt"), "404", 66},
  };
  for (const Case& each : cases) {
    EXPECT_THAT(each.answer, HasSubstr(std::string("HTTP/1.1 ") + each.status));
    EXPECT_EQ(BodyOf(each.answer)["error"]["code"], each.code) << each.answer;
  }
}

TEST_F(ApiServerTest, SaysWhatTheJobHasLessOfThanItsSubmitter) {
  const auto submit = [&](const Json& inherited) {
    const Json body = {{"spec", "command: [a]"}, {"submit_dir", "/tmp"}, {"inherited", inherited}};
    return Ask(socket_, "POST", "/v1/jobs", body.dump());
  };
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  Json inherited = {{"environment", {{"A", "b"}}},
                    {"umask", 18},
                    {"limits", {{"nofile", {files.rlim_max, files.rlim_max}}}},
                    {"niceness", 19}};
  EXPECT_EQ(BodyOf(submit(inherited))["warnings"], Json::array());
  inherited["limits"]["nofile"] = {files.rlim_max + 1, nullptr};
  EXPECT_THAT(BodyOf(submit(inherited))["warnings"].at(0).get<std::string>(),
              HasSubstr(fmt::format("limit of nofile will be {}, the daemon's, instead of {}",
                                    files.rlim_max, files.rlim_max + 1)));
  inherited["environment"]["A"] = std::string(300 << 10, 'x');
  EXPECT_THAT(submit(inherited), HasSubstr("the submitter's environment has 300 KiB"));
  inherited["environment"] = {{"A", 1}};
  EXPECT_THAT(submit(inherited), HasSubstr("HTTP/1.1 400"));
}

TEST_F(ApiServerTest, RefusesOtherUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0711), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(2);
    const std::string answer = Ask(socket_, "GET", "/v1/status");
    ::_exit(answer.starts_with("HTTP/1.1 403") && BodyOf(answer)["error"]["code"] == 77 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(ApiServerTest, LogsAreOneStreamThatEndsWithTheJob) {
  Submit("command: [a]");
  while (BodyOf(Ask(socket_, "GET", "/v1/jobs/1"))["state"] != "running") {
  }
  const std::string log = directory_ / "jobs/1/attempt-0/worker-0.log";
  WriteFileAtomically((CreateDirectories(directory_ / "jobs/1/attempt-0"), log + ".1"),
                      "one\ntwo\n");
  WriteFileAtomically(log, "three\n");
  EXPECT_THAT(Ask(socket_, "GET", "/v1/jobs/1/logs"), HasSubstr("one\ntwo\n"));
  const std::string tail = Ask(socket_, "GET", "/v1/jobs/1/logs?tail=2");
  EXPECT_THAT(tail, HasSubstr("two\n"));
  EXPECT_THAT(tail, HasSubstr("three\n"));
  EXPECT_EQ(tail.find("one\n"), std::string::npos);

  std::string followed;
  std::thread reader([&] { followed = Ask(socket_, "GET", "/v1/jobs/1/logs?follow=1"); });
  // Rotated meanwhile.
  ASSERT_EQ(::rename((log + ".1").c_str(), (log + ".2").c_str()), 0);
  ASSERT_EQ(::rename(log.c_str(), (log + ".1").c_str()), 0);
  WriteFileAtomically(log, "four\n");
  loop_->Run([&](Controller& controller) {
    agent_.End(controller.directories().OfAttempt(1, 0), EndedBy::kItself, 0, 0, 1);
    controller.ProcessEnded(1);
  });
  reader.join();
  EXPECT_THAT(followed, HasSubstr("three\n"));
  EXPECT_THAT(followed, HasSubstr("four\n"));
  EXPECT_EQ(BodyOf(Ask(socket_, "GET", "/v1/jobs/1"))["state"], "done");
}

TEST_F(ApiServerTest, ALogSaysAtItsHeadWhatWasDropped) {
  Submit("command: [a]");
  while (BodyOf(Ask(socket_, "GET", "/v1/jobs/1"))["state"] != "running") {
  }
  const std::string path = directory_ / "jobs/1/attempt-0/worker-0.log";
  CreateDirectories(directory_ / "jobs/1/attempt-0");
  {
    LogWriter log(path, 10, 2, ::geteuid(), ::getegid());
    for (const char* line : {"one\n", "two\n", "three\n", "four\n", "five\n"}) log.Write(line);
  }
  const std::string note =
      "[renzan: the first 2 lines of this output (8 bytes) were dropped: it was too long]\n";
  for (const char* query : {"", "?tail=9"})
    EXPECT_THAT(Ask(socket_, "GET", std::string("/v1/jobs/1/logs") + query),
                AllOf(HasSubstr(note), HasSubstr("three\n"), HasSubstr("four\nfive\n")));
  EXPECT_THAT(Ask(socket_, "GET", "/v1/jobs/1/logs?tail=2"),
              AllOf(HasSubstr("four\nfive\n"), Not(HasSubstr("dropped"))));
}

// Who was cut off before the job started goes on with its first attempt.
TEST_F(ApiServerTest, AFirstAttemptIsFollowedBeforeItStarts) {
  Submit("command: [a]\nreplicas: 3\nresources: {gpu: 2}");  // waits
  const std::string logs = "/v1/jobs/1/logs?attempt=0&follow=1";
  EXPECT_THAT(Ask(socket_, "GET", logs), HasSubstr("there is no attempt 0"));
  Ask(socket_, "POST", "/v1/jobs/1/cancel", "{}");
  const std::string followed = Ask(socket_, "GET", logs + "&from=0&later_attempts=1&frames=1");
  EXPECT_THAT(followed, HasSubstr(" 200 "));
  EXPECT_THAT(followed,
              HasSubstr(spec::FrameHead({.attempt = 0, .offset = 0}, spec::FrameKind::kOutput, 0)));
  EXPECT_THAT(followed, HasSubstr(spec::FrameHead({.attempt = 0, .offset = 0},
                                                  spec::FrameKind::kComplete, 0)));
}

TEST_F(ApiServerTest, CountsJobsInEveryState) {
  const auto jobs = [&] { return BodyOf(Ask(socket_, "GET", "/v1/status"))["jobs"]; };
  Submit("command: [a]\nartifacts: out");
  while (jobs()["running"] != 1) {
  }
  loop_->Run([&](Controller& controller) {
    agent_.End(controller.directories().OfAttempt(1, 0), EndedBy::kItself, 0, 0, 1);
    controller.ProcessEnded(1);
  });
  while (jobs()["running"] != 0) {
  }
  EXPECT_EQ(jobs()["collecting"], 1);
  EXPECT_EQ(BodyOf(Ask(socket_, "GET", "/v1/jobs?state=collecting"))["jobs"].size(), 1u);
  const Json counts = jobs();
  for (const char* state : kRecordStates) {
    EXPECT_TRUE(counts.contains(state)) << state;
    EXPECT_THAT(Ask(socket_, "GET", fmt::format("/v1/jobs?state={}", state)), HasSubstr(" 200 "));
  }
}

// Silent for longer than an idle connection may be, and a request may take to arrive.
TEST_F(ApiServerTest, AFollowedLogCanBeSilent) {
  Serve({.between_requests_seconds = 1, .within_request_seconds = 1, .first_request_seconds = 1});
  Submit("command: [a]");
  while (BodyOf(Ask(socket_, "GET", "/v1/jobs/1"))["state"] != "running") {
  }
  const std::string attempt = directory_ / "jobs/1/attempt-0";
  CreateDirectories(attempt);
  std::string followed;
  std::thread reader([&] { followed = Ask(socket_, "GET", "/v1/jobs/1/logs?follow=1"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  WriteFileAtomically(attempt + "/worker-0.log", "at last\n");
  loop_->Run([&](Controller& controller) {
    agent_.End(attempt, EndedBy::kItself, 0, 0, 1);
    controller.ProcessEnded(1);
  });
  reader.join();
  EXPECT_THAT(followed, HasSubstr("at last\n"));
}

TEST_F(ApiServerTest, IdleConnectionsAreClosed) {
  Serve({.between_requests_seconds = 1});
  const int silent = Connect(socket_);
  EXPECT_EQ(ReceiveAll(silent), "");
  ::close(silent);
  // Also after a request.
  const int asked = Connect(socket_);
  const std::string request = "GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n";
  ::send(asked, request.data(), request.size(), MSG_NOSIGNAL);
  EXPECT_THAT(ReceiveAll(asked), HasSubstr("HTTP/1.1 200"));
  ::close(asked);
}

TEST_F(ApiServerTest, LimitsConnections) {
  Serve({.connections = {.per_operator = 2, .refusals_per_user = 1}, .queued_seconds = 1});
  const int first = Connect(socket_), second = Connect(socket_);
  const std::string refused = Ask(socket_, "GET", "/v1/status");
  EXPECT_THAT(refused, HasSubstr("HTTP/1.1 429"));
  EXPECT_EQ(BodyOf(refused)["error"]["code"], 69);
  EXPECT_THAT(BodyOf(refused)["error"]["message"].get<std::string>(),
              HasSubstr("at most 2 of one user"));
  ::close(first);
  while (!Ask(socket_, "GET", "/v1/status").starts_with("HTTP/1.1 200")) {
  }
  ::close(second);
}

TEST_F(ApiServerTest, AConnectionWaitsForItsTurn) {
  Serve({.connections = {.per_operator = 1}});
  const std::jthread idle([fd = Connect(socket_)] { ::usleep(300'000), ::close(fd); });
  EXPECT_THAT(Ask(socket_, "GET", "/v1/status"), HasSubstr("HTTP/1.1 200"));
}

// Even with hundreds of connections.
TEST_F(ApiServerTest, AUserCannotLockOutTheOperator) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0711), 0);
  Serve({}, {"*"});
  int ready[2], end[2];
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(end, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(end[1]);
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(2);
    for (int i = 0; i < 600; ++i) Connect(socket_);
    const std::string answer = Ask(socket_, "GET", "/v1/status");
    const char said = answer.starts_with("HTTP/1.1 200") ? 'y' : 'n';
    if (::write(ready[1], &said, 1) != 1) ::_exit(2);
    char none;
    ::_exit(::read(end[0], &none, 1) == 0 ? 0 : 1);
  }
  char served = '?';
  ASSERT_EQ(::read(ready[0], &served, 1), 1);
  EXPECT_EQ(served, 'n');
  EXPECT_THAT(Ask(socket_, "GET", "/v1/status"), HasSubstr("HTTP/1.1 200"));
  ::close(end[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(ApiServerTest, StatusShowsFaults) {
  EXPECT_FALSE(BodyOf(Ask(socket_, "GET", "/v1/status")).contains("faults"));
  loop_->Run([&](Controller&) { fault_ = "job 7 is on node 9, which does not exist"; });
  Submit("command: [a]");
  while (BodyOf(Ask(socket_, "GET", "/v1/jobs/1"))["state"] != "running") {
  }
  EXPECT_EQ(BodyOf(Ask(socket_, "GET", "/v1/status"))["faults"], Json({fault_}));
}

TEST_F(ApiServerTest, ShowsWhatAnEndedJobRequested) {
  Submit("command: [a]\nreplicas: 3\nresources: {gpu: 2, cpu: 0.5, memory: 1GiB}");  // waits
  Ask(socket_, "POST", "/v1/jobs/1/cancel", "{}");
  const Json job = BodyOf(Ask(socket_, "GET", "/v1/jobs/1"));
  EXPECT_EQ(job["state"], "cancelled");
  EXPECT_EQ(job["min_workers"], 3);
  EXPECT_EQ(job["resources"], Json({{"cpu", 0.5}, {"memory_mib", 1024}, {"gpu", 2}}));
}

TEST_F(ApiServerTest, APlanHasTheSizeOfCheckpoints) {
  Submit("command: [a]\nresources: {gpu: 1}\ncheckpoint: {on_stop: true}");
  while (BodyOf(Ask(socket_, "GET", "/v1/jobs/1"))["state"] != "running") {
  }
  const std::string checkpoints = directory_ / "jobs/1/checkpoints";
  CreateDirectories(checkpoints + "/step-10/tables");
  WriteFileAtomically(checkpoints + "/step-10/tables/a", std::string(1000, 'x'));
  WriteFileAtomically(checkpoints + "/step-10/dense", std::string(100, 'x'));
  CreateDirectories(checkpoints + "/step-20");
  WriteFileAtomically(checkpoints + "/step-20/dense", std::string(100, 'x'));
  ASSERT_EQ(::symlink("/", (checkpoints + "/step-30").c_str()), 0);
  const std::string spec = "command: [b]\nresources: {gpu: 4}\ngrand_challenge: true";
  const Json plan = BodyOf(Ask(socket_, "POST", "/v1/challenge/plan",
                               Json{{"spec", spec}, {"submit_dir", "/tmp"}}.dump()));
  EXPECT_EQ(plan["stops"], Json({1}));
  EXPECT_EQ(plan["bytes_to_save"], 1100);
}

TEST_F(ApiServerTest, ShutsDownAfterTheResponse) {
  EXPECT_THAT(Ask(socket_, "POST", "/v1/shutdown", "{}"), HasSubstr("HTTP/1.1 200"));
  thread_.join();
  thread_ = std::thread([] {});
  EXPECT_THAT(Ask(socket_, "GET", "/v1/status"), HasSubstr("HTTP/1.1 503"));
}

}  // namespace
}  // namespace renzan::cluster::local
