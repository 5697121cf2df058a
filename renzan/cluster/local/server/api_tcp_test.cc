// The API over TCP: only over TLS, and for the bearers of tokens, who are ordinary users.

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/tls/make_certificate.h"
#include "renzan/cluster/local/server/api_server_testing.h"
#include "renzan/cluster/local/supervisor/job_user.h"

namespace renzan::cluster::local {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

class ApiTcpTest : public ServedApi {
 protected:
  // The message of a refusal.
  std::string Refusal(int status, const HttpAnswer& answer) {
    EXPECT_EQ(answer.status, status) << answer.body;
    if (answer.status < 400) return "";
    const Json error = Json::parse(answer.body)["error"];
    EXPECT_EQ(error["code"], 77);
    return error["message"];
  }
  static JobUser LookUp() { return FindUser(Bearer()).value(); }
  HttpAnswer SubmitOverTcp(const std::string& token) {
    return AskTcp(
        token, "POST", "/v1/jobs",
        Json{{"spec", "command: [a]"}, {"source", "job.yaml"}, {"submit_dir", "/tmp"}}.dump());
  }
};

TEST_F(ApiTcpTest, NeedsAToken) {
  const std::string token = NewToken();
  EXPECT_EQ(AskTcp(token, "GET", "/v1/status").status, 200);
  EXPECT_THAT(Refusal(401, AskTcp("", "GET", "/v1/status")), HasSubstr("needs a token"));
  for (const std::string& wrong : {token.substr(1), token + "a", token.substr(1) + "x",
                                   std::string("a"), tokens_.List()[0].sha256})
    EXPECT_THAT(Refusal(401, AskTcp(wrong, "GET", "/v1/status")), HasSubstr("unknown")) << wrong;
}

TEST_F(ApiTcpTest, ABearerIsAnOrdinaryUser) {
  const std::string token = NewToken();
  const Json you = Json::parse(AskTcp(token, "GET", "/v1/status").body)["you"];
  EXPECT_EQ(you["user"], Bearer());
  EXPECT_EQ(you["administrator"], false);
  for (const char* target : {"/v1/nodes/own-0/drain", "/v1/nodes/own-0/cordon", "/v1/shutdown",
                             "/v1/users/x/override", "/v1/tokens", "/v1/tokens/1/revoke"})
    EXPECT_THAT(Refusal(403, AskTcp(token, "POST", target,
                                    R"({"max_gpus": 1, "for_seconds": 1, "user": "nobody"})")),
                HasSubstr("only the operator may do that, on the daemon's machine"))
        << target;
  EXPECT_THAT(Refusal(403, AskTcp(token, "GET", "/v1/tokens")), HasSubstr("only the operator"));
  EXPECT_EQ(controller_->snapshot().nodes[0].state, NodeState::kReady);
  EXPECT_EQ(tokens_.List().size(), 1u);
}

TEST_F(ApiTcpTest, ABearersJobsAreTheUsers) {
  const std::string token = NewToken();
  ASSERT_EQ(SubmitOverTcp(token).status, 201);
  const Json job = Json::parse(AskTcp(token, "GET", "/v1/jobs/1").body);
  EXPECT_EQ(job["user"], Bearer());
  EXPECT_TRUE(job["spec"].is_string());
  EXPECT_EQ(AskTcp(token, "POST", "/v1/jobs/1/cancel", "{}").status, 200);
}

TEST_F(ApiTcpTest, ABearerSeesNoOutputOfOthers) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to serve a user beside its own";
  const std::string token = NewToken();
  Submit("command: [a]");
  EXPECT_EQ(Json::parse(AskTcp(token, "GET", "/v1/jobs/1").body)["spec"], nullptr);
  EXPECT_THAT(Refusal(403, AskTcp(token, "GET", "/v1/jobs/1/logs")), HasSubstr("belongs to root"));
  EXPECT_THAT(Refusal(403, AskTcp(token, "POST", "/v1/jobs/1/cancel", "{}")),
              HasSubstr("belongs to root"));
}

TEST_F(ApiTcpTest, EndsWithTheTokensTime) {
  ::setenv("TZ", "CET-1", 1);  // as every time that a command prints, in local time
  ::tzset();
  const std::string token = NewToken(10);
  EXPECT_EQ(AskTcp(token, "GET", "/v1/status").status, 200);
  clock_.seconds += 10;
  EXPECT_THAT(Refusal(401, AskTcp(token, "GET", "/v1/status")),
              HasSubstr(fmt::format(
                  "this token of {} expired at 2027-01-15 09:01:50 (local time of the daemon): ask",
                  Bearer())));
}

TEST_F(ApiTcpTest, TheLogSaysWhoMakesAndRevokesTokens) {
  testing::internal::CaptureStderr();
  const std::string body = Json{{"user", Bearer()}, {"for_seconds", 60}}.dump();
  EXPECT_THAT(Ask(socket_, "POST", "/v1/tokens", body), HasSubstr("HTTP/1.1 201"));
  EXPECT_THAT(Ask(socket_, "POST", "/v1/tokens/1/revoke"), HasSubstr("HTTP/1.1 200"));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr(fmt::format("has made token 1 for {}", Bearer())));
  EXPECT_THAT(log, HasSubstr(fmt::format("has revoked token 1 of {}", Bearer())));
}

TEST_F(ApiTcpTest, ARevokedTokenIsRefusedAtOnce) {
  const std::string token = NewToken(), other = NewToken();
  EXPECT_EQ(AskTcp(token, "GET", "/v1/status").status, 200);
  EXPECT_THAT(Ask(socket_, "POST", "/v1/tokens/1/revoke"), HasSubstr("HTTP/1.1 200"));
  EXPECT_THAT(Refusal(401, AskTcp(token, "GET", "/v1/status")), HasSubstr("has been revoked"));
  EXPECT_EQ(AskTcp(other, "GET", "/v1/status").status, 200);
  EXPECT_THAT(Ask(socket_, "POST", "/v1/tokens/1/revoke"), HasSubstr("HTTP/1.1 404"));
}

TEST_F(ApiTcpTest, TheOperatorMakesTokens) {
  const std::string answer =
      Ask(socket_, "POST", "/v1/tokens", Json{{"user", Bearer()}, {"for_seconds", 60}}.dump());
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 201"));
  const Json made = BodyOf(answer);
  EXPECT_EQ(made["address"], url_);
  EXPECT_EQ(made["pin"], identity_.pin);
  EXPECT_EQ(made["expires"].get<int64_t>() - made["created"].get<int64_t>(), 60'000);
  EXPECT_EQ(AskTcp(made["token"], "GET", "/v1/status").status, 200);
  const Json listed = BodyOf(Ask(socket_, "GET", "/v1/tokens"))["tokens"];
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0]["user"], Bearer());
  EXPECT_EQ(listed.dump().find(made["token"]), std::string::npos);
  for (const char* wrong : {"{}", R"({"user": "nobody"})", R"({"user": 1, "for_seconds": 1})",
                            R"({"user": "nobody", "for_seconds": 0})",
                            R"({"user": "nobody", "for_seconds": 31622401})"})
    EXPECT_THAT(Ask(socket_, "POST", "/v1/tokens", wrong), HasSubstr("HTTP/1.1 400")) << wrong;
}

TEST_F(ApiTcpTest, ADaemonWithAnotherKeyDoesNotGetTheToken) {
  pin_ = PublicKeyPin(MakePrivateKey());
  try {
    AskTcp(NewToken(), "GET", "/v1/status");
    FAIL();
  } catch (const HttpFailure& failure) {
    EXPECT_EQ(failure.kind, HttpFailure::Kind::kNotTrusted);
  }
  EXPECT_EQ(tokens_.List()[0].last_used, 0);
}

TEST_F(ApiTcpTest, SpeaksOnlyTls) {
  const int fd = Connect(url_);
  const std::string request = fmt::format(
      "GET /v1/status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n", NewToken());
  ::send(fd, request.data(), request.size(), MSG_NOSIGNAL);
  EXPECT_EQ(ReceiveAll(fd).find("HTTP/"), std::string::npos);
  ::close(fd);
  EXPECT_EQ(tokens_.List()[0].last_used, 0);
}

// Clients without a token cannot lock out users of the socket.
TEST_F(ApiTcpTest, ManyConnectionsDoNotBlockTheSocket) {
  std::vector<int> idle;
  for (int each = 0; each < 200; ++each) idle.push_back(Connect(url_));
  EXPECT_THAT(Ask(socket_, "GET", "/v1/status"), HasSubstr("HTTP/1.1 200"));
  for (const int fd : idle) ::close(fd);
}

// Nor those that have one.
TEST_F(ApiTcpTest, SlowConnectionsDoNotBlockOthers) {
  Serve({.connections = {.per_user = 2}});
  const std::string token = NewToken();
  std::vector<int> slow;
  for (int each = 0; each < 10; ++each) {
    slow.push_back(Connect(url_));
    ::send(slow.back(), "\x16\x03\x01\x20", 4, MSG_NOSIGNAL);
  }
  for (int each = 0; each < 3; ++each) EXPECT_EQ(AskTcp(token, "GET", "/v1/status").status, 200);
  for (const int fd : slow) ::close(fd);
}

// However slowly it trickles in, so that the connection is never idle.
TEST_F(ApiTcpTest, ARequestThatDoesNotArriveIsNotAwaited) {
  Serve({.first_request_seconds = 1});
  const std::string plain = "GET /v1/status HTTP/1.1\r\nHost: " + std::string(100, 'x');
  const std::string handshake = "\x16\x03\x01\x20\x20" + std::string(100, 'x');
  for (const auto& [address, request] : {std::pair(socket_, plain), {url_, handshake}}) {
    const int slow = Connect(address);
    const auto begin = std::chrono::steady_clock::now();
    char byte;
    for (const char each : request) {
      if (::send(slow, &each, 1, MSG_NOSIGNAL) != 1) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      if (::recv(slow, &byte, 1, MSG_DONTWAIT) == 0) break;
    }
    const auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_GT(took, std::chrono::milliseconds(900)) << address;
    EXPECT_LT(took, std::chrono::seconds(6)) << address;
    ::close(slow);
  }
}

// As on the socket; and one user's do not keep others out, nor those without a token.
TEST_F(ApiTcpTest, ABearersConnectionsCountAsTheUsers) {
  constexpr int kMost = 4;
  Serve({.connections = {.per_user = kMost}});
  const std::string token = NewToken();
  ASSERT_EQ(SubmitOverTcp(token).status, 201);
  const std::string attempt = directory_ / "jobs/1/attempt-0";
  WriteFileAtomically((CreateDirectories(attempt), attempt + "/worker-0.log"), "one\n");
  ASSERT_EQ(::chown((attempt + "/worker-0.log").c_str(), LookUp().uid, LookUp().gid), 0);
  std::atomic<int> following = 0;
  std::vector<std::jthread> followers;
  for (int each = 0; each < kMost; ++each) {
    followers.emplace_back([&] {
      HttpRequest request{.method = "GET", .url = url_ + "/v1/jobs/1/logs?follow=1"};
      request.headers = {{"Authorization", "Bearer " + token}};
      request.take = [&](uint64_t, std::span<const std::byte>) { ++following; };
      request.take_status = 200;
      request.take_at_most = 1 << 20;
      request.pinned_key = pin_;
      Http().Send(request);
    });
    while (following <= each) ::usleep(1000);
  }
  EXPECT_EQ(AskTcp(token, "GET", "/v1/status").status, 429);
  Refusal(401, AskTcp("wrong", "GET", "/v1/status"));
  loop_->Run([&](Controller& controller) {
    agent_.End(controller.directories().OfAttempt(1, 0), EndedBy::kItself, 0, 0, 1);
    controller.ProcessEnded(1);
  });
  followers.clear();
  int status = 429;
  while (status == 429) status = AskTcp(token, "GET", "/v1/status").status;
  EXPECT_EQ(status, 200);
}

}  // namespace
}  // namespace renzan::cluster::local
