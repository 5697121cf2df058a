// Servers that are busy, silent, slow or cut off, and tokens that are replaced: what is retried,
// what is given up, and what may have been executed nevertheless.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <latch>
#include <nlohmann/json.hpp>
#include <thread>

#include "renzan/base/clock_testing.h"
#include "renzan/base/file/file.h"
#include "renzan/cluster/kubernetes/api/http_api_for_test.h"
#include "renzan/cluster/kubernetes/api/server_for_test.h"

namespace renzan::cluster::kubernetes {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(HttpApiTroubleTest, ABusyServerIsAskedAgainAFewTimes) {
  std::atomic<int> busy = 2;
  TestServer server([&](const auto&, auto& response) {
    if (busy-- > 0) {
      response.status = busy == 0 ? 503 : 429;
      response.set_header("Retry-After", "0");
    }
    response.set_content(NamedObject("a").dump(), "application/json");
  });
  HttpApi api(AccessTo(server.url()), {.max_retries = 3});
  api.Create(kPods, "ns", NamedObject("a"));
  EXPECT_EQ(server.asked().size(), 3u);
  for (const auto& request : server.asked()) EXPECT_THAT(request.body, HasSubstr("u-a"));

  busy = 1000;
  EXPECT_EQ(ErrorOf([&] { api.Get(kPods, "ns", "a"); }).http_status(), 429);
  EXPECT_EQ(server.asked().size(), 3u + 4u);
}

TEST(HttpApiTroubleTest, OtherFailuresAreReportedAtOnce) {
  std::string retry_after;
  TestServer server([&](const auto&, auto& response) {
    response.status = 503;
    if (!retry_after.empty()) response.set_header("Retry-After", retry_after);
  });
  HttpApi api(AccessTo(server.url()), {.longest_retry_wait_seconds = 10});
  EXPECT_EQ(ErrorOf([&] { api.Get(kPods, "ns", "a"); }).http_status(), 503);
  retry_after = "3600";
  EXPECT_EQ(ErrorOf([&] { api.Get(kPods, "ns", "a"); }).http_status(), 503);
  EXPECT_EQ(server.asked().size(), 2u);
}

TEST(HttpApiTroubleTest, AStopEndsTheWaitForABusyServer) {
  std::latch asked(1);
  std::atomic<int> times = 0;
  TestServer server([&](const auto&, auto& response) {
    response.status = 503;
    response.set_header("Retry-After", "25");
    if (times++ == 0) asked.count_down();
  });
  std::stop_source stop;
  HttpApi api(AccessTo(server.url()), {}, stop.get_token());
  std::thread stopper([&] {
    asked.wait();
    stop.request_stop();
  });
  EXPECT_TRUE(ErrorOf([&] { api.Get(kPods, "ns", "a"); }).is_stopped());
  stopper.join();
  EXPECT_EQ(times, 1);
}

TEST(HttpApiTroubleTest, AStopEndsARequestWithoutAnAnswer) {
  std::latch asked(1);
  RawServer server([&](int connection, int) {
    std::string request;
    RawServer::ReadRequest(connection, request);
    RawServer::SendAnswer(connection, NamedObject("a").dump());
    RawServer::ReadRequest(connection, request, "u-a");
    asked.count_down();
    RawServer::WaitForEnd(connection);
  });
  std::stop_source stop;
  // Longer than the test is allowed to take.
  HttpApi api(AccessTo(server.url()),
              {.connect_timeout_seconds = 3600, .request_timeout_seconds = 3600}, stop.get_token());
  api.Get(kPods, "ns", "a");  // connects: curl's own timers would wake it while it does
  std::thread stopper([&] {
    asked.wait();
    stop.request_stop();
  });
  const ApiError error = ErrorOf([&] { api.Create(kPods, "ns", NamedObject("a")); });
  stopper.join();
  EXPECT_TRUE(error.is_stopped());
  EXPECT_TRUE(error.maybe_executed());
  const ApiError later = ErrorOf([&] { api.Create(kPods, "ns", NamedObject("a")); });
  EXPECT_TRUE(later.is_stopped());
  EXPECT_FALSE(later.maybe_executed());
}

TEST(HttpApiTroubleTest, AWriteWithoutAnAnswerMayHaveBeenExecuted) {
  RawServer server([](int connection, int) { RawServer::WaitForEnd(connection); });
  HttpApi api(AccessTo(server.url()), {.request_timeout_seconds = 0.05});
  const ApiError write = ErrorOf([&] { api.Bind("ns", "p", "u", "n"); });
  EXPECT_TRUE(write.no_answer());
  EXPECT_TRUE(write.maybe_executed());
  EXPECT_EQ(write.reason(), "Timeout");
  EXPECT_EQ(write.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(write.what(), HasSubstr("it may have been done: read the object again"));
  const ApiError read = ErrorOf([&] { api.Get(kPods, "ns", "a"); });
  EXPECT_TRUE(read.no_answer());
  EXPECT_FALSE(read.maybe_executed());
}

TEST(HttpApiTroubleTest, AWriteThatReachesNobodyIsNotExecuted) {
  std::string url;
  {
    url = RawServer([](int, int) {}).url();
  }
  HttpApi api(AccessTo(url));
  const ApiError error = ErrorOf([&] { api.Bind("ns", "p", "u", "n"); });
  EXPECT_TRUE(error.no_answer());
  EXPECT_FALSE(error.maybe_executed());
  EXPECT_THAT(error.what(), AllOf(HasSubstr("POST " + url), HasSubstr("cannot reach"),
                                  HasSubstr("is the address in the test right?")));
}

TEST(HttpApiTroubleTest, AnAnswerCutShortIsNone) {
  RawServer server([](int connection, int) {
    std::string request;
    RawServer::ReadRequest(connection, request, "u-a");
    RawServer::Send(connection,
                    "HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{\"metadata\":");
  });
  HttpApi api(AccessTo(server.url()));
  const ApiError error = ErrorOf([&] { api.Create(kPods, "ns", NamedObject("a")); });
  EXPECT_TRUE(error.no_answer());
  EXPECT_TRUE(error.maybe_executed());
  EXPECT_EQ(error.reason(), "Disconnected");
}

// curl itself would send it again on a new connection.
TEST(HttpApiTroubleTest, AWriteIsNotRepeatedWhenAReusedConnectionBreaks) {
  std::atomic<int> writes = 0;
  RawServer server([&](int connection, int) {
    std::string request;
    for (;;) {
      if (!RawServer::ReadRequest(connection, request)) return;
      if (request.starts_with("POST")) {
        while (request.find("u-a") == std::string::npos) {
          std::string more;
          if (!RawServer::ReadRequest(connection, more, "u-a")) return;
          request += more;
        }
        ++writes;
        return;
      }
      RawServer::SendAnswer(connection, NamedObject("a").dump());
    }
  });
  HttpApi api(AccessTo(server.url()));
  api.Get(kPods, "ns", "a");
  const ApiError error = ErrorOf([&] { api.Create(kPods, "ns", NamedObject("a")); });
  EXPECT_TRUE(error.maybe_executed());
  EXPECT_EQ(writes, 1);
  // The next request works again.
  api.Get(kPods, "ns", "a");
}

TEST(HttpApiTroubleTest, AReadIsRepeatedWhenAReusedConnectionBreaks) {
  std::atomic<int> reads = 0;
  RawServer server([&](int connection, int) {
    std::string request;
    while (RawServer::ReadRequest(connection, request)) {
      if (++reads == 2) return;
      RawServer::SendAnswer(connection, NamedObject("a").dump());
    }
  });
  HttpApi api(AccessTo(server.url()));
  api.Get(kPods, "ns", "a");
  api.Get(kPods, "ns", "a");
  EXPECT_EQ(reads, 3);
}

TEST(HttpApiTroubleTest, AnEndlessAnswerIsCutOff) {
  RawServer server([](int connection, int) {
    std::string request;
    RawServer::ReadRequest(connection, request);
    RawServer::Send(connection, "HTTP/1.1 200 OK\r\n\r\n" + std::string(100'000, 'x'));
    RawServer::WaitForEnd(connection);
  });
  HttpApi api(AccessTo(server.url()), {.max_answer_bytes = 50'000});
  const ApiError error = ErrorOf([&] { api.Get(kPods, "ns", "a"); });
  EXPECT_EQ(error.reason(), "TooLarge");
  EXPECT_THAT(error.what(), HasSubstr("is it an API server?"));
}

TEST(HttpApiTroubleTest, AReplacedTokenIsReadAgain) {
  TemporaryDirectory directory;
  WriteFileAtomically(directory / "token", "first\n");
  TestServer server([](const auto& request, auto& response) {
    if (request.get_header_value("Authorization") == "Bearer refused") response.status = 401;
    response.set_content(NamedObject("a").dump(), "application/json");
  });
  Access access = AccessTo(server.url());
  ManualClock clock;
  access.credentials = MakeTokenFile(directory / "token", "", access.from, clock);
  HttpApi api(access);
  const auto get = [&] {
    api.Get(kPods, "ns", "a");
    return server.asked().back().get_header_value("Authorization");
  };
  EXPECT_EQ(get(), "Bearer first");
  WriteFileAtomically(directory / "token", "refused");
  EXPECT_EQ(get(), "Bearer first");
  clock.seconds += 60;
  EXPECT_EQ(ErrorOf([&] { get(); }).http_status(), 401);
  EXPECT_EQ(server.asked().size(), 3u);
  // Before the minute is over, since the server refuses the old one.
  WriteFileAtomically(directory / "token", "second");
  EXPECT_EQ(get(), "Bearer second");
  std::filesystem::remove(directory / "token");
  clock.seconds += 60;
  EXPECT_EQ(get(), "Bearer second");
}

TEST(HttpApiTroubleTest, ATokenThatCannotBeReadIsAnError) {
  TemporaryDirectory directory;
  Access access = AccessTo("http://127.0.0.1:1");
  access.credentials = MakeTokenFile(directory / "token", "", access.from);
  HttpApi api(access);
  EXPECT_THROW(api.Get(kPods, "ns", "a"), Error);
  WriteFileAtomically(directory / "token", "two\nlines");
  try {
    api.Get(kPods, "ns", "a");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNoPermission);
    EXPECT_THAT(error.what(), HasSubstr("does not contain a token"));
  }
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
