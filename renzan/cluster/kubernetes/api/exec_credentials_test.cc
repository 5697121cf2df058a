// Credentials of a program, from its configuration to the requests that carry them.

#include "renzan/cluster/kubernetes/api/exec_credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "renzan/base/clock.h"
#include "renzan/base/file/file.h"
#include "renzan/cluster/kubernetes/api/certificates_for_test.h"
#include "renzan/cluster/kubernetes/api/http_api_for_test.h"
#include "renzan/cluster/kubernetes/api/pod_logs.h"
#include "renzan/cluster/kubernetes/api/server_for_test.h"
#include "renzan/cluster/kubernetes/api/watch.h"

namespace renzan::cluster::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kVersion = "client.authentication.k8s.io/v1";

// For several threads.
struct SharedClock : Clock {
  double MonotonicSeconds() const override { return seconds; }
  double UnixSeconds() const override { return 1.8e9 + seconds; }
  std::atomic<double> seconds = 100;
};

class ExecCredentialsTest : public testing::Test {
 protected:
  ExecCredentialsTest() {
    // Counts its runs; its answer has "RUN" where it is to say which.
    WriteFileAtomically(directory_ / "plugin",
                        "#!/bin/sh\ncd " + directory_.path() +
                            "\necho >> runs\nwhile [ -e hold ]; do sleep 0.02; done\n"
                            "[ ! -e broken ] || { echo broken >&2; exit 1; }\n"
                            "sed \"s/RUN/$(wc -l < runs)/\" answer\n");
    std::filesystem::permissions(directory_ / "plugin", std::filesystem::perms::owner_all);
    access_.from = "the test";
    access_.credentials = Make();
    Answer({{"token", "t-RUN"}});
  }

  std::shared_ptr<Credentials> Make() {
    return MakeExecCredentials({.where = "config: users.u.user.exec",
                                .argv = {directory_ / "plugin"},
                                .api_version = kVersion},
                               {}, clock_);
  }
  void Answer(Json status, std::optional<double> seconds = {}) {
    if (seconds)
      status["expirationTimestamp"] = FormatUtc(std::ceil(clock_.UnixSeconds() + *seconds));
    WriteFileAtomically(
        directory_ / "answer",
        Json{{"apiVersion", kVersion}, {"kind", "ExecCredential"}, {"status", status}}.dump());
  }
  void Set(const char* file) { WriteFileAtomically(directory_ / file, ""); }
  void Unset(const char* file) { std::filesystem::remove(directory_ / file); }
  int64_t runs() const {
    if (!std::filesystem::exists(directory_ / "runs")) return 0;
    return static_cast<int64_t>(std::filesystem::file_size(directory_ / "runs"));
  }
  // Until that many have begun. `meanwhile` is called again and again.
  void WaitForRuns(
      int64_t count, const std::function<void()>& meanwhile = [] {}) const {
    for (int tries = 0; runs() < count; ++tries) {
      ASSERT_LT(tries, 4000) << "only " << runs() << " runs";
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      meanwhile();
    }
  }

  std::string Token() { return access_.credentials->Get({})->token; }
  // What Token() becomes once a run in the background has ended.
  std::string NextToken(const std::string& last) {
    std::string token = Token();
    for (int tries = 0; token == last && tries < 1000; ++tries, token = Token())
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return token;
  }

  // A server that refuses these tokens.
  void Serve(std::set<std::string> refused) {
    refused_ = std::move(refused);
    server_ = std::make_unique<TestServer>([this](const auto& request, auto& response) {
      const std::lock_guard lock(mutex_);
      if (refused_.contains(request.get_header_value("Authorization"))) response.status = 401;
      response.set_content(NamedObject("a").dump(), "application/json");
    });
    access_.server = server_->url();
  }
  std::vector<std::string> Sent() {
    std::vector<std::string> tokens;
    for (const auto& request : server_->asked())
      tokens.push_back(request.get_header_value("Authorization"));
    return tokens;
  }

  TemporaryDirectory directory_;
  SharedClock clock_;
  Access access_;
  std::mutex mutex_;
  std::set<std::string> refused_;
  std::unique_ptr<TestServer> server_;
};

TEST_F(ExecCredentialsTest, OneRunServesAllConnections) {
  Serve({});
  const ApiFactory make = MakeHttpApis(access_);
  EXPECT_EQ(runs(), 0);
  Set("hold");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { make({})->Get(kPods, "ns", "a"); });
  WaitForRuns(1);
  Unset("hold");
  for (std::thread& thread : threads) thread.join();
  MakeHttpPodLogs(access_)->Read({.ns = "ns", .pod = "p", .container = "c"}, [](auto) {});
  clock_.seconds += 1e6;
  make({})->Get(kPods, "ns", "a");
  EXPECT_EQ(runs(), 1);
  EXPECT_THAT(Sent(), SizeIs(6));
  for (const std::string& sent : Sent()) EXPECT_EQ(sent, "Bearer t-1");
}

TEST_F(ExecCredentialsTest, RunsAgainOnceTheyHaveExpired) {
  Answer({{"token", "t-RUN"}}, 900);
  EXPECT_EQ(Token(), "t-1");
  clock_.seconds += 800;
  EXPECT_EQ(Token(), "t-1");
  EXPECT_EQ(runs(), 1);
  Answer({{"token", "t-RUN"}}, 900);
  clock_.seconds += 101;
  EXPECT_EQ(Token(), "t-2");
}

TEST_F(ExecCredentialsTest, NobodyWaitsForARenewalInTime) {
  Answer({{"token", "t-RUN"}}, 900);
  EXPECT_EQ(Token(), "t-1");
  clock_.seconds += 850;
  Answer({{"token", "t-RUN"}}, 900);
  Set("hold");
  EXPECT_EQ(Token(), "t-1");
  WaitForRuns(2);
  EXPECT_EQ(Token(), "t-1");
  Unset("hold");
  EXPECT_EQ(NextToken("t-1"), "t-2");
  EXPECT_EQ(runs(), 2);
}

TEST_F(ExecCredentialsTest, AFailedRenewalCostsNothingBeforeTheyExpire) {
  Answer({{"token", "t-RUN"}}, 900);
  EXPECT_EQ(Token(), "t-1");
  Set("broken");
  clock_.seconds += 850;
  testing::internal::CaptureStderr();
  EXPECT_EQ(Token(), "t-1");
  WaitForRuns(2);
  // Once that run has ended and some seconds have passed, it tries again.
  WaitForRuns(3, [&] {
    if (clock_.seconds < 990) clock_.seconds += 1;
    EXPECT_EQ(Token(), "t-1");
  });
  clock_.seconds += 50;
  EXPECT_THAT(ErrorOf([&] { Token(); }).what(), HasSubstr("plugin' ended with exit status 1"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("earlier credentials stay in use"));
  Unset("broken");
  clock_.seconds += 10;
  EXPECT_EQ(Token().substr(0, 2), "t-");
}

TEST_F(ExecCredentialsTest, ShortLivedOnesAreNotRenewedForEachRequest) {
  Answer({{"token", "t-RUN"}}, 20);
  EXPECT_EQ(Token(), "t-1");
  clock_.seconds += 14;
  EXPECT_EQ(Token(), "t-1");
  EXPECT_EQ(runs(), 1);
  // By a wrong clock they have expired already: the server knows better.
  clock_.seconds += 100;
  EXPECT_EQ(Token(), "t-2");
  EXPECT_EQ(Token(), "t-2");
  clock_.seconds += 6;
  EXPECT_EQ(Token(), "t-3");
  EXPECT_EQ(runs(), 3);
}

TEST_F(ExecCredentialsTest, FailuresAreNotRepeatedForEachRequest) {
  Set("broken");
  for (int i = 0; i < 3; ++i) {
    const ApiError error = ErrorOf([&] { Token(); });
    EXPECT_EQ(error.code(), ErrorCode::kNoPermission);
    EXPECT_TRUE(error.no_answer());
    EXPECT_FALSE(error.maybe_executed());
    EXPECT_FALSE(error.is_forbidden());
  }
  EXPECT_EQ(runs(), 1);
  Unset("broken");
  clock_.seconds += 6;
  EXPECT_EQ(Token(), "t-2");
}

TEST_F(ExecCredentialsTest, ARefusedTokenIsRenewedOnceAndTheRequestRepeated) {
  Serve({"Bearer t-1"});
  HttpApi api(access_);
  api.Create(kPods, "ns", NamedObject("a"));
  EXPECT_THAT(Sent(), ElementsAre("Bearer t-1", "Bearer t-2"));
  for (const auto& request : server_->asked()) EXPECT_THAT(request.body, HasSubstr("u-a"));
  {
    const std::lock_guard lock(mutex_);
    refused_ = {"Bearer t-2", "Bearer t-3"};
  }
  // At once after the last renewal, another would not help.
  EXPECT_EQ(ErrorOf([&] { api.Get(kPods, "ns", "a"); }).http_status(), 401);
  EXPECT_EQ(runs(), 2);
  clock_.seconds += 6;
  EXPECT_EQ(ErrorOf([&] { api.Get(kPods, "ns", "a"); }).http_status(), 401);
  EXPECT_THAT(Sent(),
              ElementsAre("Bearer t-1", "Bearer t-2", "Bearer t-2", "Bearer t-2", "Bearer t-3"));
  EXPECT_EQ(runs(), 3);
}

TEST_F(ExecCredentialsTest, TheSameTokenAgainIsNotTriedAgain) {
  Serve({"Bearer same"});
  Answer({{"token", "same"}});
  EXPECT_EQ(ErrorOf([&] { HttpApi(access_).Get(kPods, "ns", "a"); }).http_status(), 401);
  EXPECT_EQ(runs(), 2);
  EXPECT_THAT(Sent(), SizeIs(1));
}

TEST_F(ExecCredentialsTest, ConnectionsThatAreRefusedAtOnceShareTheRenewal) {
  Serve({"Bearer t-1"});
  const auto refused = access_.credentials->Get({});
  Set("hold");
  std::vector<std::thread> threads;
  std::atomic<int> renewed = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] { renewed += access_.credentials->Renew(refused, {}) ? 1 : 0; });
  WaitForRuns(2);
  Unset("hold");
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(renewed, 4);
  EXPECT_EQ(runs(), 2);
}

TEST_F(ExecCredentialsTest, AProgramThatFailsAfterARefusalIsTheReason) {
  Serve({"Bearer t-1"});
  EXPECT_EQ(Token(), "t-1");
  Set("broken");
  testing::internal::CaptureStderr();
  const ApiError error = ErrorOf([&] { HttpApi(access_).Get(kPods, "ns", "a"); });
  EXPECT_EQ(error.reason(), "NoCredentials");
  EXPECT_THAT(error.what(), HasSubstr("exit status 1: broken: log in again"));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "broken\n");  // and not a warning besides
}

TEST_F(ExecCredentialsTest, AStopEndsTheWaitForIt) {
  Serve({});
  Set("hold");
  std::stop_source stop;
  HttpApi api(access_, {}, stop.get_token());
  std::thread stopper([&] {
    WaitForRuns(1);
    stop.request_stop();
  });
  EXPECT_TRUE(ErrorOf([&] { api.Get(kPods, "ns", "a"); }).is_stopped());
  stopper.join();
}

TEST_F(ExecCredentialsTest, ARunEndsWithTheCredentials) {
  Set("hold");
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(access_.credentials->Get(stop.get_token()), ApiError);
  access_.credentials = nullptr;  // returns
}

// A watch that the server ends regularly continues with a new token, and lists nothing again.
TEST_F(ExecCredentialsTest, WatchesSurviveTheirToken) {
  Answer({{"token", "t-RUN"}}, 900);
  std::mutex mutex;
  std::vector<std::string> watched;
  std::set<std::string> refused;
  RawServer server([&](int connection, int) {
    std::string request;
    while (RawServer::ReadRequest(connection, request)) {
      const std::string bearer = "Bearer t-";
      const std::string token = request.substr(request.find(bearer) + bearer.size(), 1);
      std::unique_lock lock(mutex);
      if (request.find("watch=1") == std::string::npos) {
        RawServer::SendAnswer(connection, R"({"metadata": {"resourceVersion": "5"}, "items": []})");
        continue;
      }
      watched.push_back(token);
      if (refused.contains(token)) {
        RawServer::SendAnswer(connection, StatusText(401, "Unauthorized", ""), "401 Unauthorized");
        continue;
      }
      const Json object = NamedObject("a", std::to_string(5 + watched.size()));
      const std::string event = Json{{"type", "MODIFIED"}, {"object", object}}.dump() + "\n";
      if (watched.size() == 1) clock_.seconds += 901;  // it expires while the stream lasts
      if (watched.size() == 2) refused = {token};      // the server refuses it earlier than that
      RawServer::SendAnswer(connection, event);
      if (watched.size() < 4) continue;
      lock.unlock();
      return RawServer::WaitForEnd(connection);
    }
  });
  access_.server = server.url();
  std::vector<std::string> failures;
  const Watch watch(
      MakeHttpApis(access_), {.kind = kPods, .first_backoff_seconds = 0.01}, [](WatchChange) {},
      [&](const Error& error) {
        const std::lock_guard lock(mutex);
        failures.push_back(error.what());
      },
      clock_);
  for (int tries = 0; watch.counts().events < 3 && tries < 2000; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const std::lock_guard lock(mutex);
  EXPECT_THAT(failures, ElementsAre());
  EXPECT_EQ(watch.counts().lists, 1);
  ASSERT_GE(watched.size(), 4u);
  watched.resize(4);
  EXPECT_THAT(watched, ElementsAre("1", "2", "2", "3"));
}

// A server that answers with the name in the client's certificate.
class ClientCertificateTest : public ExecCredentialsTest {
 protected:
  ClientCertificateTest()
      : authority_("authority", "", nullptr, now_ - kTestDay, now_ + kTestDay),
        certificate_("api", "IP:127.0.0.1", &authority_, now_ - kTestDay, now_ + kTestDay),
        server_(certificate_.certificate(), certificate_.key(), Trusted()) {
    server_.Get(".*", [](const httplib::Request& request, httplib::Response& response) {
      X509* const client = SSL_get1_peer_certificate(request.ssl);
      char name[64] = "";
      X509_NAME_get_text_by_NID(X509_get_subject_name(client), NID_commonName, name, sizeof name);
      X509_free(client);
      response.set_content(NamedObject(name).dump(), "application/json");
    });
    access_.server = fmt::format("https://127.0.0.1:{}", server_.bind_to_any_port("127.0.0.1"));
    access_.ca_pem = authority_.pem();
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~ClientCertificateTest() override {
    server_.stop();
    thread_.join();
  }
  X509_STORE* Trusted() {
    X509_STORE* const store = X509_STORE_new();
    X509_STORE_add_cert(store, authority_.certificate());
    return store;
  }
  void AnswerWithClient(const std::string& name) {
    const time_t now = static_cast<time_t>(clock_.UnixSeconds());
    // Valid by both clocks.
    const TestCertificate client(name, "", &authority_, std::min(now, now_) - kTestDay,
                                 std::max(now, now_) + kTestDay);
    Answer({{"clientCertificateData", client.pem()}, {"clientKeyData", client.key_pem()}}, 900);
  }

  const time_t now_ = std::time(nullptr);
  TestCertificate authority_, certificate_;
  httplib::SSLServer server_;
  std::thread thread_;
};

TEST_F(ClientCertificateTest, RequestsCarryTheCertificateAndItsSuccessor) {
  AnswerWithClient("ann");
  HttpApi api(access_);
  const auto name = [&] { return api.Get(kPods, "ns", "a")["metadata"]["name"]; };
  EXPECT_EQ(name(), "ann");
  clock_.seconds += 901;
  AnswerWithClient("bob");
  EXPECT_EQ(name(), "bob");
  EXPECT_EQ(name(), "bob");
  EXPECT_EQ(runs(), 2);
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
