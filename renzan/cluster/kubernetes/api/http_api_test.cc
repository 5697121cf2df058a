#include "renzan/cluster/kubernetes/api/http_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>

#include "renzan/cluster/kubernetes/api/http_api_for_test.h"
#include "renzan/cluster/kubernetes/api/server_for_test.h"

namespace renzan::cluster::kubernetes {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(HttpApiTest, GetAsksForTheObject) {
  TestServer server([](const auto&, auto& response) {
    response.set_content(NamedObject("a", "7").dump(), "application/json");
  });
  Access access = AccessTo(server.url());
  access.token = "secret";
  HttpApi api(access);
  EXPECT_EQ(api.Get(kJobs, "team", "a", "status")["metadata"]["resourceVersion"], "7");
  const auto asked = server.asked();
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].method, "GET");
  EXPECT_EQ(asked[0].path, "/apis/batch/v1/namespaces/team/jobs/a/status");
  EXPECT_EQ(asked[0].get_header_value("Authorization"), "Bearer secret");
}

TEST(HttpApiTest, RequestsShareAConnection) {
  std::atomic<int> connections = 0;
  RawServer server([&](int connection, int) {
    ++connections;
    std::string request;
    while (RawServer::ReadRequest(connection, request))
      RawServer::SendAnswer(connection, NamedObject("a").dump());
  });
  HttpApi api(AccessTo(server.url()));
  for (int i = 0; i < 3; ++i) api.Get(kPods, "ns", "a");
  EXPECT_EQ(connections, 1);
}

TEST(HttpApiTest, ListReadsAllPages) {
  TestServer server([](const auto& request, auto& response) {
    const std::string next = request.get_param_value("continue");
    Json page = {{"metadata", {{"resourceVersion", "50"}, {"continue", ""}}}};
    page["items"] = Json::array({NamedObject(next.empty() ? "a" : next == "p/2" ? "b" : "c")});
    if (next.empty()) page["metadata"]["continue"] = "p/2";
    if (next == "p/2") page["metadata"]["continue"] = "p3";
    response.set_content(page.dump(), "application/json");
  });
  HttpApi api(AccessTo(server.url()), {.page_size = 1});
  const Json list = api.List(kPods, "", {.labels = "x in (1,2)", .fields = "spec.nodeName=n"});
  EXPECT_EQ(list["metadata"]["resourceVersion"], "50");
  ASSERT_EQ(list["items"].size(), 3u);
  EXPECT_EQ(list["items"][1]["metadata"]["name"], "b");
  EXPECT_EQ(list["items"][2]["kind"], "Pod");
  EXPECT_EQ(list["items"][2]["apiVersion"], "v1");
  const auto asked = server.asked();
  ASSERT_EQ(asked.size(), 3u);
  EXPECT_EQ(asked[0].path, "/api/v1/pods");
  for (const auto& request : asked) {
    EXPECT_EQ(request.get_param_value("limit"), "1");
    EXPECT_EQ(request.get_param_value("labelSelector"), "x in (1,2)");
    EXPECT_EQ(request.get_param_value("fieldSelector"), "spec.nodeName=n");
  }
}

TEST(HttpApiTest, AListThatExpiresBetweenPagesStartsAgain) {
  std::atomic<int> expired = 0;
  TestServer server([&](const auto& request, auto& response) {
    const bool second = request.has_param("continue");
    if (second && expired++ == 0) {
      response.status = 410;
      response.set_content(StatusText(410, "Expired", "too old"), "application/json");
      return;
    }
    Json page = {{"metadata", {{"resourceVersion", expired == 0 ? "1" : "2"}}}};
    page["items"] = Json::array({NamedObject(second ? "b" : "a")});
    if (!second) page["metadata"]["continue"] = "next";
    response.set_content(page.dump(), "application/json");
  });
  HttpApi api(AccessTo(server.url()));
  const Json list = api.List(kPods, "", {});
  EXPECT_EQ(list["items"].size(), 2u) << list;
  EXPECT_EQ(list["metadata"]["resourceVersion"], "2");
}

TEST(HttpApiTest, AListThatAlwaysExpiresIsAnError) {
  TestServer server([&](const auto&, auto& response) {
    response.status = 410;
    response.set_content(StatusText(410, "Expired", "too old"), "application/json");
  });
  HttpApi api(AccessTo(server.url()));
  EXPECT_TRUE(ErrorOf([&] { api.List(kPods, "", {}); }).is_expired());
  EXPECT_EQ(server.asked().size(), 3u);
}

// What a write sends.
struct Sent {
  std::string line, content_type;
  Json body;
};
template <typename Call>
Sent SentBy(const Call& call) {
  TestServer server([](const auto&, auto& response) {
    response.set_content(NamedObject("a").dump(), "application/json");
  });
  HttpApi api(AccessTo(server.url()));
  call(api);
  const auto asked = server.asked();
  CHECK(asked.size() == 1);
  return {asked[0].method + " " + asked[0].target, asked[0].get_header_value("Content-Type"),
          Json::parse(asked[0].body)};
}

TEST(HttpApiTest, CreateAddsTheKind) {
  const Sent sent = SentBy([](Api& api) { api.Create(kJobs, "ns", {{"spec", {{"x", 1}}}}); });
  EXPECT_EQ(sent.line, "POST /apis/batch/v1/namespaces/ns/jobs");
  EXPECT_EQ(sent.content_type, "application/json");
  EXPECT_EQ(sent.body, Json({{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"spec", {{"x", 1}}}}));
}

TEST(HttpApiTest, ReplaceSendsTheVersion) {
  const Sent sent =
      SentBy([](Api& api) { api.Replace(kPods, "ns", NamedObject("a", "9"), "status"); });
  EXPECT_EQ(sent.line, "PUT /api/v1/namespaces/ns/pods/a/status");
  EXPECT_EQ(sent.body["metadata"]["resourceVersion"], "9");
}

TEST(HttpApiDeathTest, ReplaceWithoutAVersionIsABug) {
  HttpApi api(AccessTo("http://127.0.0.1:1"));
  EXPECT_EXIT(api.Replace(kPods, "ns", {{"metadata", {{"name", "a"}}}}),
              testing::ExitedWithCode(70), "without a resourceVersion");
}

TEST(HttpApiTest, MergePatchSendsThePatchAlone) {
  const Sent sent = SentBy([](Api& api) {
    api.MergePatch(kPods, "ns", "a", {{"spec", {{"x", nullptr}}}}, "scale");
  });
  EXPECT_EQ(sent.line, "PATCH /api/v1/namespaces/ns/pods/a/scale");
  EXPECT_EQ(sent.content_type, "application/merge-patch+json");
  EXPECT_EQ(sent.body, Json({{"spec", {{"x", nullptr}}}}));
}

TEST(HttpApiTest, DeleteSendsItsConditions) {
  Sent sent = SentBy([](Api& api) { api.Delete(kPods, "ns", "a", "u1", 20); });
  EXPECT_EQ(sent.line, "DELETE /api/v1/namespaces/ns/pods/a");
  EXPECT_EQ(sent.body["preconditions"], Json({{"uid", "u1"}}));
  EXPECT_EQ(sent.body["gracePeriodSeconds"], 20);
  EXPECT_EQ(sent.body["propagationPolicy"], "Background");
  sent = SentBy([](Api& api) { api.Delete(kPods, "ns", "a", "", {}); });
  EXPECT_FALSE(sent.body.contains("preconditions"));
  EXPECT_FALSE(sent.body.contains("gracePeriodSeconds"));
}

TEST(HttpApiTest, BindNamesPodAndNode) {
  const Sent sent = SentBy([](Api& api) { api.Bind("ns", "p", "u1", "node-1"); });
  EXPECT_EQ(sent.line, "POST /api/v1/namespaces/ns/pods/p/binding");
  EXPECT_EQ(sent.body,
            Json({{"apiVersion", "v1"},
                  {"kind", "Binding"},
                  {"metadata", {{"name", "p"}, {"namespace", "ns"}, {"uid", "u1"}}},
                  {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", "node-1"}}}}));
}

// The error of a Create() that gets this answer.
ApiError AnsweredWith(int status, const std::string& body) {
  TestServer server([&](const auto&, auto& response) {
    response.status = status;
    response.set_content(body, "application/json");
  });
  HttpApi api(AccessTo(server.url()));
  return ErrorOf([&] { api.Create(kPods, "ns", NamedObject("a")); });
}

TEST(HttpApiTest, AnswersBecomeErrors) {
  const ApiError conflict = AnsweredWith(409, StatusText(409, "Conflict", "was modified"));
  EXPECT_EQ(conflict.http_status(), 409);
  EXPECT_TRUE(conflict.is_conflict());
  EXPECT_FALSE(conflict.is_already_exists());
  EXPECT_FALSE(conflict.no_answer());
  EXPECT_FALSE(conflict.maybe_executed());
  EXPECT_EQ(conflict.code(), ErrorCode::kTempFail);
  EXPECT_THAT(conflict.what(), AllOf(HasSubstr("POST http://127.0.0.1:"),
                                     HasSubstr("/api/v1/namespaces/ns/pods: 409 Conflict: was "
                                               "modified: read the object again")));

  const ApiError exists = AnsweredWith(409, StatusText(409, "AlreadyExists", "exists"));
  EXPECT_TRUE(exists.is_already_exists());
  EXPECT_FALSE(exists.is_conflict());

  const ApiError forbidden = AnsweredWith(403, StatusText(403, "Forbidden", "no"));
  EXPECT_EQ(forbidden.code(), ErrorCode::kNoPermission);
  EXPECT_THAT(forbidden.what(), HasSubstr("grant this right to the user of the test"));

  EXPECT_EQ(AnsweredWith(401, StatusText(401, "Unauthorized", "")).code(),
            ErrorCode::kNoPermission);
  EXPECT_EQ(AnsweredWith(422, StatusText(422, "Invalid", "bad")).code(), ErrorCode::kData);
  EXPECT_TRUE(AnsweredWith(500, StatusText(500, "InternalError", "")).maybe_executed());
}

TEST(HttpApiTest, AMissingKindIsNotAMissingObject) {
  const ApiError object = AnsweredWith(404, StatusText(404, "NotFound", "pods a"));
  EXPECT_EQ(object.code(), ErrorCode::kNoInput);
  EXPECT_THAT(object.what(), Not(HasSubstr("definition")));
  EXPECT_THAT(AnsweredWith(404, "404 page not found\n").what(),
              HasSubstr("404: 404 page not found: does the server have this kind?"));
}

TEST(HttpApiTest, AnswersOfOtherServersAreQuotedInPart) {
  const ApiError proxy = AnsweredWith(502, "<html>\x1b[1m" + std::string(5000, 'x'));
  EXPECT_TRUE(proxy.maybe_executed());
  EXPECT_THAT(proxy.what(), HasSubstr("502: <html>\\x1b[1mxxx"));
  EXPECT_LT(std::string(proxy.what()).size(), 600u);
  EXPECT_THAT(AnsweredWith(302, "").what(), HasSubstr("is it an API server?"));
  // Whether or not it was done, the answer cannot be read.
  const ApiError garbage = AnsweredWith(200, "hello");
  EXPECT_EQ(garbage.reason(), "InvalidAnswer");
  EXPECT_TRUE(garbage.maybe_executed());
}

TEST(HttpApiTest, DeletingWhatIsGoneIsNoError) {
  TestServer server([](const auto&, auto& response) {
    response.status = 404;
    response.set_content(StatusText(404, "NotFound", "gone"), "application/json");
  });
  HttpApi(AccessTo(server.url())).Delete(kPods, "ns", "a", "", {});
  EXPECT_EQ(server.asked().size(), 1u);
}

TEST(HttpApiTest, DeletingAnotherObjectIsAnError) {
  TestServer server([](const auto&, auto& response) {
    response.status = 409;
    response.set_content(StatusText(409, "Conflict", "uid"), "application/json");
  });
  HttpApi api(AccessTo(server.url()));
  EXPECT_TRUE(ErrorOf([&] { api.Delete(kPods, "ns", "a", "u", {}); }).is_conflict());
}

TEST(HttpApiTest, TheFactoryMakesIndependentApis) {
  TestServer server([](const auto&, auto& response) {
    response.set_content(NamedObject("a").dump(), "application/json");
  });
  const ApiFactory make = MakeHttpApis(AccessTo(server.url()));
  std::stop_source stop;
  const auto one = make(stop.get_token()), two = make({});
  stop.request_stop();
  EXPECT_TRUE(ErrorOf([&] { one->Get(kPods, "ns", "a"); }).is_stopped());
  two->Get(kPods, "ns", "a");
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
