// Watches of the API client: streams, whole and broken.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "renzan/cluster/kubernetes/api/http_api_for_test.h"
#include "renzan/cluster/kubernetes/api/server_for_test.h"

namespace renzan::cluster::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The events of a stream, and the error that ends it.
struct Streamed {
  std::vector<std::string> events = {};
  std::optional<ApiError> error = {};
};
Streamed Stream(const RawServer& server, HttpApiOptions options = {}) {
  HttpApi api(AccessTo(server.url()), options);
  Streamed streamed;
  try {
    api.Watch(kPods, "ns", {.labels = "a=b"}, "42", [&](std::string_view type, Json&& object) {
      streamed.events.push_back(
          fmt::format("{} {}", type, object["metadata"]["resourceVersion"].get<std::string>()));
    });
  } catch (const ApiError& error) {
    streamed.error = error;
  }
  return streamed;
}

std::string Event(const std::string& type, const Json& object) {
  return Json{{"type", type}, {"object", object}}.dump() + "\n";
}

constexpr const char* kStream = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

// Sends these pieces, then ends the stream.
RawServer::Handler Pieces(std::vector<std::string> pieces, std::string* request) {
  return [pieces, request](int connection, int) {
    RawServer::ReadRequest(connection, *request);
    RawServer::Send(connection, kStream);
    for (const std::string& piece : pieces) RawServer::SendChunk(connection, piece);
    RawServer::Send(connection, "0\r\n\r\n");
  };
}

TEST(HttpApiWatchTest, WatchCutsTheStreamIntoEvents) {
  const std::string a = Event("ADDED", NamedObject("a", "43"));
  const std::string large = Event("MODIFIED", [] {
    Json object = NamedObject("b", "44");
    object["data"] = std::string(3'000'000, 'x');
    return object;
  }());
  const std::string bookmark =
      Event("BOOKMARK", {{"metadata", {{"resourceVersion", "45"}}}, {"kind", "Pod"}});
  std::string request;
  RawServer server(Pieces({a.substr(0, 5), a.substr(5) + large.substr(0, 70), large.substr(70),
                           bookmark + "\n" + Event("DELETED", NamedObject("a", "46"))},
                          &request));
  const Streamed streamed = Stream(server, {.watch_seconds = 123});
  EXPECT_THAT(streamed.events, ElementsAre("ADDED 43", "MODIFIED 44", "BOOKMARK 45", "DELETED 46"));
  EXPECT_FALSE(streamed.error) << streamed.error->what();
  EXPECT_THAT(request, HasSubstr("GET /api/v1/namespaces/ns/pods?watch=1&allowWatchBookmarks=true&"
                                 "resourceVersion=42&timeoutSeconds=123&labelSelector=a%3Db "));
}

TEST(HttpApiWatchTest, AnErrorEventIsAnError) {
  std::string request;
  RawServer server(
      Pieces({Event("ERROR", Json::parse(StatusText(410, "Expired", "too old")))}, &request));
  const Streamed streamed = Stream(server);
  ASSERT_TRUE(streamed.error);
  EXPECT_TRUE(streamed.error->is_expired());
  EXPECT_EQ(streamed.error->reason(), "Expired");
}

TEST(HttpApiWatchTest, A410OfAWatchIsAnError) {
  RawServer server([](int connection, int) {
    std::string request;
    RawServer::ReadRequest(connection, request);
    RawServer::SendAnswer(connection, StatusText(410, "Gone", "too old"), "410 Gone");
  });
  const Streamed streamed = Stream(server);
  ASSERT_TRUE(streamed.error);
  EXPECT_TRUE(streamed.error->is_expired());
}

TEST(HttpApiWatchTest, InvalidEventsAreErrors) {
  const std::vector<std::string> invalid = {
      "garbage\n",
      "[]\n",
      "{\"type\": 1}\n",
      Event("ADDED", {{"metadata", {{"name", "a"}}}}),
      Event("ADDED", {{"metadata", {{"resourceVersion", "1"}}}}),
      Event("BOOKMARK", {{"x", 1}}),
      std::string(2000, 'x')};
  for (const std::string& event : invalid) {
    std::string request;
    RawServer server(Pieces({Event("ADDED", NamedObject("a", "43")), event}, &request));
    const Streamed streamed = Stream(server, {.max_answer_bytes = 1000});
    EXPECT_THAT(streamed.events, ElementsAre("ADDED 43"));
    ASSERT_TRUE(streamed.error) << event;
    EXPECT_EQ(streamed.error->reason(), "InvalidAnswer") << event;
  }
}

TEST(HttpApiWatchTest, AStreamThatEndsWithinALineIsDisconnected) {
  const std::string begun = Event("ADDED", NamedObject("b", "44")).substr(0, 20);
  std::string request;
  RawServer ended(Pieces({Event("ADDED", NamedObject("a", "43")), begun}, &request));
  RawServer cut([&](int connection, int) {
    std::string head;
    RawServer::ReadRequest(connection, head);
    RawServer::Send(connection, kStream);
    RawServer::SendChunk(connection, Event("ADDED", NamedObject("a", "43")) + begun);
  });
  for (const RawServer* server : {&ended, &cut}) {
    const Streamed streamed = Stream(*server);
    EXPECT_THAT(streamed.events, ElementsAre("ADDED 43"));
    ASSERT_TRUE(streamed.error);
    EXPECT_TRUE(streamed.error->no_answer());
    EXPECT_EQ(streamed.error->reason(), "Disconnected");
  }
}

TEST(HttpApiWatchTest, AWatchThatTheServerForgetsIsGivenUp) {
  RawServer server([](int connection, int) {
    std::string request;
    RawServer::ReadRequest(connection, request);
    RawServer::Send(connection, kStream);
    RawServer::SendChunk(connection, Event("ADDED", NamedObject("a", "43")));
    RawServer::WaitForEnd(connection);
  });
  const Streamed streamed = Stream(server, {.watch_seconds = 0, .watch_grace_seconds = 0.1});
  ASSERT_TRUE(streamed.error);
  EXPECT_EQ(streamed.error->reason(), "Timeout");
}

TEST(HttpApiWatchTest, AnExceptionOfTheTakerEndsTheWatch) {
  std::string request;
  RawServer server(Pieces({Event("ADDED", NamedObject("a", "43"))}, &request));
  HttpApi api(AccessTo(server.url()));
  EXPECT_THROW(api.Watch(kPods, "ns", {}, "42",
                         [](std::string_view, Json&&) { throw std::out_of_range("taker"); }),
               std::out_of_range);
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
