#include "renzan/cluster/kubernetes/admission/review.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "renzan/cluster/kubernetes/objects/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr TimeMs kNow = 1'800'000'000'000;

Json JobObject(const Json& spec = Json::object()) {
  Json object = {
      {"apiVersion", "renzan.dev/v1alpha1"},
      {"kind", "GangJob"},
      {"metadata", {{"namespace", "ads"}, {"name", "ranker"}, {"uid", "u"}}},
      {"spec",
       {{"queue", "default"},
        {"replicas", 2},
        {"template", {{"spec", {{"containers", {{{"name", "main"}, {"image", "x"}}}}}}}}}}};
  object["spec"].update(spec);
  return object;
}

Json JobWithGpus(int gpus, const Json& spec = Json::object()) {
  Json object = JobObject(spec);
  object["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {
      {"nvidia.com/gpu", std::to_string(gpus)}};
  return object;
}

Json WithStatus(Json object, const std::string& phase, int workers = 2) {
  object["status"] = {{"phase", phase}, {"attempts", 1}};
  if (workers > 0) object["status"]["placement"] = {{{"node", "n0"}, {"workers", workers}}};
  return object;
}

Json Review(const std::string& operation, const Json& object, const Json& before = nullptr) {
  return {
      {"apiVersion", "admission.k8s.io/v1"},
      {"kind", "AdmissionReview"},
      {"request",
       {{"uid", "7"},
        {"operation", operation},
        {"namespace", "ads"},
        {"userInfo", {{"username", "ann"}, {"groups", {"system:authenticated", "ml"}}}},
        {"resource", {{"group", "renzan.dev"}, {"version", "v1alpha1"}, {"resource", "gangjobs"}}},
        {"object", object},
        {"oldObject", before}}}};
}

WatchChange Listed(Json items) {
  return {WatchChange::Type::kSynced, std::make_shared<const Json>(std::move(items))};
}

Json NodeObject(const std::string& name, int gpus) {
  return {{"metadata", {{"name", name}, {"labels", {{"renzan.dev/pool", "p"}, {"zone", "a"}}}}},
          {"status",
           {{"allocatable",
             {{"cpu", "8"},
              {"memory", "64Gi"},
              {"pods", "110"},
              {"nvidia.com/gpu", std::to_string(gpus)}}},
            {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}};
}

Json QueueObject(const std::string& name, const Json& limit = Json::object()) {
  return {{"metadata", {{"name", name}}}, {"spec", {{"limit", limit}}}};
}

struct Verdict {
  bool allowed = false;
  std::string message;
  std::vector<std::string> warnings;
};

class ReviewTest : public ::testing::Test {
 protected:
  // There are no queues, and no policy that could be used: without one, no job had a priority.
  void SetUp() override {
    SeeQueues(Json::array());
    const Json policy = {{"metadata", {{"name", "default"}}},
                         {"spec", {{"limits", {{"maxPriority", "high"}}}}}};
    view_.TakePolicy(Listed(Json::array({policy})), kNow);
  }

  void SeeNodes(const Json& nodes) { view_.Take(Source::kNodes, Listed(nodes), kNow); }
  void SeeQueues(const Json& queues) { view_.Take(Source::kQueues, Listed(queues), kNow); }

  Json Ask(const Json& review) {
    const ServerAnswer answer = AnswerReview(review.dump(), view_, kNow);
    EXPECT_EQ(answer.status, 200u) << answer.text;
    EXPECT_STREQ(answer.content_type, "application/json");
    return Json::parse(answer.text);
  }
  Verdict Judge(const Json& review) {
    const Json answer = Ask(review);
    const Json& response = answer.at("response");
    EXPECT_EQ(response.at("uid"), "7");
    Verdict verdict{.allowed = response.at("allowed"),
                    .message = TextAt(response, {"status", "message"})};
    if (response.contains("warnings"))
      verdict.warnings = response["warnings"].get<std::vector<std::string>>();
    EXPECT_EQ(verdict.allowed, verdict.message.empty());
    return verdict;
  }
  Verdict Create(const Json& object) { return Judge(Review("CREATE", object)); }
  Verdict Update(const Json& before, const Json& spec) {
    Json object = before;
    object["spec"].update(spec);
    return Judge(Review("UPDATE", object, before));
  }

  ClusterView view_;
};

TEST_F(ReviewTest, GoesOnAfterAWatchWasCutOff) {
  view_.Take(Source::kNodes, {WatchChange::Type::kRelisted, nullptr}, kNow);
  view_.TakePolicy({WatchChange::Type::kRelisted, nullptr}, kNow);
  EXPECT_TRUE(Create(JobObject()).allowed);
}

// Nobody would check a user later.
TEST_F(ReviewTest, KeepsNoJobThatItCannotCheckYet) {
  ClusterView unread;
  const auto ask = [&](const Json& review) {
    return Json::parse(AnswerReview(review.dump(), unread, kNow).text).at("response");
  };
  const Json create = Review("CREATE", JobObject());
  for (int listed = 0; listed < 2; ++listed) {
    const Json answer = ask(create);
    EXPECT_EQ(answer["allowed"], false);
    EXPECT_EQ(answer["status"]["code"], 503);
    EXPECT_EQ(answer["status"]["details"]["retryAfterSeconds"], 1);
    EXPECT_THAT(answer["status"]["message"].get<std::string>(), HasSubstr("try again in a few"));
    EXPECT_EQ(ask(Review("UPDATE", JobObject({{"queue", "b"}}), JobObject()))["allowed"], false);
    // What needs no right is allowed, and what is wrong in any case is said.
    EXPECT_EQ(ask(Review("UPDATE", JobObject({{"cancelled", true}}), JobObject()))["allowed"],
              true);
    EXPECT_EQ(ask(Review("CREATE", JobObject({{"minReplicas", 3}})))["status"]["code"], 400);
    unread.Take(Source::kQueues, Listed(Json::array()), kNow);
  }
  unread.TakePolicy(Listed(Json::array()), kNow);
  EXPECT_EQ(ask(create)["allowed"], true);
}

TEST_F(ReviewTest, AnswersInTheVersionOfTheQuestion) {
  for (const char* version : {"admission.k8s.io/v1", "admission.k8s.io/v1beta1"}) {
    Json review = Review("CREATE", JobObject());
    review["apiVersion"] = version;
    EXPECT_EQ(Ask(review), (Json{{"apiVersion", version},
                                 {"kind", "AdmissionReview"},
                                 {"response", {{"uid", "7"}, {"allowed", true}}}}));
  }
}

TEST_F(ReviewTest, RefusesWhatTheControllerWouldHoldWithTheSameSentence) {
  for (const Json& wrong : std::vector<Json>{{{"minReplicas", 3}},
                                             {{"timeout", "3651d"}},
                                             {{"retryBackoff", "3651d"}},
                                             {{"checkpoint", {{"maxInterval", "0s"}}}},
                                             {{"priority", 1'000'001}}}) {
    const Json object = JobObject(wrong);
    const Verdict verdict = Create(object);
    EXPECT_FALSE(verdict.allowed) << wrong;
    EXPECT_EQ(verdict.message, GangJobFrom(std::make_shared<const Json>(object)).invalid);
    EXPECT_THAT(verdict.message, HasSubstr("ads/ranker"));
    EXPECT_THAT(verdict.warnings, IsEmpty());
  }
  EXPECT_TRUE(Create(JobObject({{"minReplicas", 2}})).allowed);
}

TEST_F(ReviewTest, NamesItsJobBeforeTheObjectDoes) {
  Json object = JobObject({{"minReplicas", 3}});
  object["metadata"].erase("namespace");
  EXPECT_THAT(Create(object).message, HasSubstr("ads/ranker"));
}

TEST_F(ReviewTest, WarnsOfWhatTheClusterLacks) {
  // No nodes have been listed yet.
  EXPECT_THAT(Create(JobWithGpus(9, {{"queue", "none"}})).warnings, IsEmpty());
  SeeNodes({NodeObject("n0", 8), NodeObject("n1", 8)});

  EXPECT_THAT(Create(JobWithGpus(8)).warnings, IsEmpty());
  Verdict verdict = Create(JobWithGpus(9));
  EXPECT_TRUE(verdict.allowed);
  EXPECT_THAT(verdict.warnings,
              ElementsAre("the job waits, as the cluster is now: needs 9 GPUs on one node; the "
                          "largest has 8 GPUs (n0)"));
  EXPECT_THAT(Create(JobWithGpus(8, {{"replicas", 3}})).warnings,
              ElementsAre(HasSubstr("on the empty cluster there is room for 2")));
  verdict = Create(JobObject({{"queue", "none"}}));
  EXPECT_TRUE(verdict.allowed);
  EXPECT_THAT(verdict.warnings, ElementsAre(HasSubstr("there is no queue 'none'")));
  Json picky = JobObject();
  picky["spec"]["template"]["spec"]["nodeSelector"] = {{"zone", "b"}};
  EXPECT_THAT(Create(picky).warnings, ElementsAre(HasSubstr("no node has label zone=b")));
  Json exotic = JobObject();
  exotic["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {
      {"example.com/nic", "1"}};
  EXPECT_THAT(Create(exotic).warnings, ElementsAre(HasSubstr("no node has any example.com/nic")));
}

TEST_F(ReviewTest, RefusesWhatItsQueueForbids) {
  const Json object = JobObject({{"queue", "ads"}, {"preemptible", false}});
  Json queue = QueueObject("ads");
  SeeQueues(Json::array({queue}));
  EXPECT_TRUE(Create(object).allowed);
  queue["spec"]["notPreemptible"] = false;
  SeeQueues(Json::array({queue}));
  EXPECT_EQ(Create(object).message,
            "preemptible: false: jobs in queue 'ads' must be preemptible (spec.notPreemptible of "
            "the Queue)");
  EXPECT_TRUE(Create(JobObject({{"queue", "ads"}})).allowed);
}

TEST_F(ReviewTest, AQueueIsForItsMembers) {
  const auto see = [&](const Json& members) {
    Json queue = QueueObject("vision");
    queue["spec"]["members"] = members;
    SeeQueues(Json::array({queue, QueueObject("default")}));
  };
  const Json object = JobObject({{"queue", "vision"}});
  for (const Json& members : std::vector<Json>{{{"users", {"ann", "bob"}}},
                                               {{"groups", {"ml"}}},
                                               {{"namespaces", {"ads"}}},
                                               {{"users", {"bob"}}, {"groups", {"a", "ml"}}}}) {
    see(members);
    EXPECT_TRUE(Create(object).allowed) << members;
  }
  for (const Json& members : std::vector<Json>{
           {{"users", {"ml", "bob"}}}, {{"groups", {"ann"}}}, {{"namespaces", {"web"}}}}) {
    see(members);
    EXPECT_EQ(Create(object).message,
              "queue 'vision' is for its members, and user 'ann' in namespace 'ads' is none of "
              "them (spec.members of the Queue): use default, or ask an administrator to be one");
    EXPECT_EQ(Ask(Review("CREATE", object))["response"]["status"]["code"], 403);
    // Nor by way of another queue.
    EXPECT_FALSE(Update(JobObject(), {{"queue", "vision"}}).allowed);
    EXPECT_TRUE(Update(object, {{"queue", "default"}}).allowed);
  }
  // Whoever edits or cancels a job has not submitted it.
  see({{"users", {"bob"}}});
  EXPECT_TRUE(Update(object, {{"retries", 3}}).allowed);
  EXPECT_THAT(Update(object, {{"cancelled", true}}).warnings, IsEmpty());
  // Exempt namespaces may use every queue.
  const Json limits = {{"exemptNamespaces", {"ads"}}};
  view_.TakePolicy(Listed(Json::array({Json{{"metadata", {{"name", "default"}}},
                                            {"spec", {{"limits", limits}}}}})),
                   0);
  EXPECT_TRUE(Create(object).allowed);
  EXPECT_TRUE(Create(JobObject({{"queue", "vision"}, {"priority", 100}})).allowed);
}

TEST_F(ReviewTest, WhatIsRefusedDoesNotBecomeWorse) {
  Json queue = QueueObject("default");
  queue["spec"]["maxPriority"] = 5;
  Json other = QueueObject("other");
  other["spec"]["members"] = {{"users", {"bob"}}};
  SeeQueues(Json::array({queue, other}));
  EXPECT_TRUE(Create(JobObject({{"priority", 5}})).allowed);
  EXPECT_FALSE(Update(JobObject(), {{"priority", 6}}).allowed);
  // From before its queue was limited.
  const Json urgent = WithStatus(JobObject({{"priority", 6}}), "pending", 0);
  EXPECT_THAT(Update(urgent, {{"retries", 3}}).warnings, ElementsAre(HasSubstr("at most 5")));
  EXPECT_FALSE(Update(urgent, {{"priority", 7}}).allowed);
  EXPECT_TRUE(Update(urgent, {{"priority", 5}}).allowed);
  EXPECT_FALSE(Update(urgent, {{"queue", "other"}}).allowed);
}

TEST_F(ReviewTest, FollowsQueuesAndNodes) {
  SeeNodes(Json::array({NodeObject("n0", 8)}));
  SeeQueues(Json::array());
  EXPECT_THAT(Create(JobWithGpus(1)).warnings, IsEmpty());
  const auto put = [&](Source source, WatchChange::Type type, Json object) {
    view_.Take(source, {type, std::make_shared<const Json>(std::move(object))}, kNow);
  };
  using Type = WatchChange::Type;
  // With one Queue, the implicit `default` queue is gone, even for a job that named it before.
  put(Source::kQueues, Type::kChanged, QueueObject("ads", {{"nvidia.com/gpu", 4}}));
  EXPECT_THAT(Create(JobWithGpus(1)).warnings, ElementsAre(HasSubstr("no queue 'default'")));
  EXPECT_THAT(Create(JobWithGpus(2, {{"queue", "ads"}})).warnings, IsEmpty());
  EXPECT_THAT(Create(JobWithGpus(3, {{"queue", "ads"}})).warnings,
              ElementsAre(HasSubstr("the limit of queue ads is 4 GPUs")));
  put(Source::kQueues, Type::kDeleted, QueueObject("ads"));
  EXPECT_THAT(Create(JobWithGpus(1, {{"queue", "ads"}})).warnings,
              ElementsAre(HasSubstr("no queue 'ads'")));
  put(Source::kQueues, Type::kChanged, QueueObject("default"));
  put(Source::kNodes, Type::kChanged, NodeObject("n1", 16));
  EXPECT_THAT(Create(JobWithGpus(16, {{"replicas", 1}})).warnings, IsEmpty());
  put(Source::kNodes, Type::kDeleted, NodeObject("n1", 16));
  EXPECT_THAT(Create(JobWithGpus(16, {{"replicas", 1}})).warnings,
              ElementsAre(HasSubstr("the largest has 8 GPUs (n0)")));
}

TEST_F(ReviewTest, RefusesWhatThePolicyForbidsItsNamespace) {
  const Json urgent = JobObject({{"priority", 6}});
  const auto policy = [](const Json& spec) {
    return Json{{"metadata", {{"name", "default"}}}, {"spec", spec}};
  };
  SeeQueues(Json::array());
  // No policy has been valid yet.
  EXPECT_TRUE(Create(urgent).allowed);
  EXPECT_TRUE(Create(JobObject({{"priority", 1'000}})).allowed);
  view_.TakePolicy({WatchChange::Type::kChanged,
                    std::make_shared<const Json>(policy({{"limits", {{"maxPriority", 5}}}}))},
                   0);
  const Json answer = Ask(Review("CREATE", urgent));
  EXPECT_EQ(answer["response"]["status"]["code"], 403);
  EXPECT_THAT(answer["response"]["status"]["message"].get<std::string>(),
              HasSubstr("user 'ann' in namespace 'ads' may have at most 5 (limits.maxPriority of"));
  // An existing job can be cancelled, but such a job cannot be newly requested.
  const Verdict verdict = Update(WithStatus(urgent, "pending", 0), {{"cancelled", true}});
  EXPECT_TRUE(verdict.allowed);
  EXPECT_THAT(verdict.warnings, ElementsAre(HasSubstr("at most 5")));
  EXPECT_FALSE(Update(JobObject(), {{"priority", 6}}).allowed);
  // An invalid policy changes nothing, a policy of another name is ignored, and without any the
  // defaults apply.
  view_.TakePolicy({WatchChange::Type::kChanged,
                    std::make_shared<const Json>(policy({{"limits", {{"maxPriority", "high"}}}}))},
                   0);
  EXPECT_FALSE(Create(urgent).allowed);
  Json other = policy({{"limits", {{"maxPriority", 9}}}});
  other["metadata"]["name"] = "other";
  view_.TakePolicy({WatchChange::Type::kChanged, std::make_shared<const Json>(other)}, 0);
  EXPECT_FALSE(Create(urgent).allowed);
  view_.TakePolicy({WatchChange::Type::kDeleted, std::make_shared<const Json>(policy({}))}, 0);
  EXPECT_TRUE(Create(JobObject({{"priority", 0}})).allowed);
  EXPECT_FALSE(Create(JobObject({{"priority", 1}})).allowed);
}

TEST_F(ReviewTest, WarnsOfTheCapOfItsNamespace) {
  SeeNodes(Json::array({NodeObject("n0", 8)}));
  SeeQueues(Json::array());
  const Json caps = Json::array({Json{{"namespace", "ads"}, {"maxGpus", 2}}});
  const Json policy = {{"metadata", {{"name", "default"}}}, {"spec", {{"userCaps", caps}}}};
  view_.TakePolicy(Listed(Json::array({policy})), 0);
  EXPECT_THAT(Create(JobWithGpus(1)).warnings, IsEmpty());
  EXPECT_THAT(Create(JobWithGpus(2)).warnings,
              ElementsAre(HasSubstr("needs 4 GPUs; the cap of user ads is 2 GPUs")));
}

TEST_F(ReviewTest, AnEndedJobIsNotEdited) {
  for (const char* phase : {"done", "failed", "cancelled", "timeout"}) {
    const Json ended = WithStatus(JobObject(), phase, 0);
    const Verdict verdict = Update(ended, {{"replicas", 3}});
    EXPECT_FALSE(verdict.allowed);
    EXPECT_THAT(verdict.message, HasSubstr(phase));
    // A user who cancels all jobs need not know which have just ended.
    EXPECT_TRUE(Update(ended, {{"cancelled", true}}).allowed);
  }
  EXPECT_TRUE(Update(WithStatus(JobObject(), "pending", 0), {{"replicas", 3}}).allowed);
}

TEST_F(ReviewTest, ACancelledJobStaysCancelled) {
  const Json cancelled = WithStatus(JobObject({{"cancelled", true}}), "stopping");
  EXPECT_THAT(Update(cancelled, {{"cancelled", false}}).message, HasSubstr("there is no way back"));
  Json without = cancelled;
  without["spec"].erase("cancelled");
  EXPECT_FALSE(Judge(Review("UPDATE", without, cancelled)).allowed);
  EXPECT_TRUE(Update(WithStatus(JobObject(), "running"), {{"cancelled", true}}).allowed);
}

TEST_F(ReviewTest, SaysWhenEditsOfARunningJobApply) {
  const Json running = WithStatus(JobObject({{"minReplicas", 2}, {"replicas", 4}}), "running", 3);
  EXPECT_THAT(Update(running, {{"retries", 3}, {"timeout", "1h"}, {"startTimeout", "1h"}}).warnings,
              IsEmpty());
  EXPECT_THAT(Update(running, {{"minReplicas", 3}, {"replicas", 5}}).warnings, IsEmpty());
  EXPECT_THAT(Update(running, {{"priority", 3}, {"replicas", 5}}).warnings,
              ElementsAre("the job is running: the changes (priority) apply when it next starts"));
  EXPECT_THAT(Update(running, {{"minReplicas", 1}, {"replicas", 2}}).warnings,
              ElementsAre(HasSubstr("the changes (replicas) apply when it next starts")));
  const Json saves = WithStatus(JobObject({{"checkpoint", {{"onStop", true}}}}), "running");
  EXPECT_THAT(Update(saves, {{"replicas", 3}}).warnings,
              ElementsAre(HasSubstr("the job has 2 workers: it saves its work, stops, and")));
  const Json stops = WithStatus(JobObject({{"checkpoint", {{"onStop", true}}}}), "stopping");
  EXPECT_THAT(Update(stops, {{"replicas", 3}}).warnings,
              ElementsAre("the job is stopping: the changes (replicas) apply when it next starts"));
  EXPECT_THAT(Update(WithStatus(JobObject(), "pending", 0), {{"priority", 3}}).warnings, IsEmpty());
  EXPECT_FALSE(Update(running, {{"minReplicas", 9}}).allowed);
}

TEST_F(ReviewTest, WhatWasWrongBeforeStandsInNobodysWay) {
  const Json wrong = WithStatus(JobObject({{"minReplicas", 3}}), "pending", 0);
  EXPECT_THAT(Update(wrong, {{"cancelled", true}}).warnings, ElementsAre(HasSubstr("replicas")));
  EXPECT_TRUE(Update(wrong, {{"minReplicas", 2}}).allowed);
  EXPECT_FALSE(Update(wrong, {{"timeout", "3651d"}, {"minReplicas", 2}}).allowed);
  Json labelled = wrong;
  labelled["metadata"]["labels"] = {{"a", "b"}};
  const Verdict verdict = Judge(Review("UPDATE", labelled, wrong));
  EXPECT_TRUE(verdict.allowed);
  EXPECT_THAT(verdict.warnings, IsEmpty());
  // The garbage collector removes its finalizer, whatever else has changed.
  Json deleting = WithStatus(JobObject({{"replicas", 9}}), "done", 0);
  deleting["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z";
  EXPECT_TRUE(Judge(Review("UPDATE", deleting, WithStatus(JobObject(), "done", 0))).allowed);
}

TEST_F(ReviewTest, AllowsWhatItIsNotAbout) {
  const Json wrong = JobObject({{"minReplicas", 3}});
  EXPECT_FALSE(Judge(Review("CREATE", wrong)).allowed);
  EXPECT_TRUE(Judge(Review("DELETE", nullptr, wrong)).allowed);
  Json review = Review("UPDATE", wrong, JobObject());
  review["request"]["subResource"] = "status";
  EXPECT_TRUE(Judge(review).allowed);
  review = Review("CREATE", wrong);
  review["request"]["resource"] = {{"group", ""}, {"version", "v1"}, {"resource", "pods"}};
  EXPECT_TRUE(Judge(review).allowed);
}

TEST_F(ReviewTest, AnotherVersionsStatusIsNoStatus) {
  EXPECT_TRUE(Update(WithStatus(JobObject(), "dreaming"), {{"replicas", 3}}).allowed);
}

TEST_F(ReviewTest, MalformedReviewsGetOneLine) {
  Json other = Review("CREATE", JobObject());
  other["apiVersion"] = "admission.k8s.io/v2";
  Json nameless = Review("CREATE", JobObject());
  nameless["request"].erase("uid");
  Json nobodys = Review("CREATE", JobObject());
  nobodys["request"]["userInfo"].erase("username");
  const std::string deep(100'000, '[');
  Json queue = Review("CREATE", JobObject());
  std::string nested = queue.dump();
  nested.replace(nested.find("\"default\""), 9, deep + std::string(100'000, ']'));
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("[]"), std::string("\xff"), deep, nested,
        std::string("{\"kind\": \"AdmissionReview\"}"), other.dump(), nameless.dump(),
        nobodys.dump(), Review("CREATE", nullptr).dump(), Review("CREATE", "job").dump(),
        Review("UPDATE", JobObject(), nullptr).dump()}) {
    const ServerAnswer answer = AnswerReview(body, view_, kNow);
    EXPECT_EQ(answer.status, 400u) << body.substr(0, 200);
    EXPECT_EQ(answer.text.find('\n'), answer.text.size() - 1) << answer.text;
    EXPECT_THAT(answer.text, HasSubstr("expected an AdmissionReview of admission.k8s.io/v1: "));
  }
}

// Any value in place of any other gets an answer, and does no harm.
TEST_F(ReviewTest, SurvivesValuesOfOtherTypes) {
  SeeNodes(Json::array({NodeObject("n0", 8)}));
  SeeQueues(Json::array({QueueObject("default")}));
  const Json good =
      Review("UPDATE", JobWithGpus(1, {{"checkpoint", {{"onStop", true}}}, {"timeout", "1h"}}),
             WithStatus(JobObject(), "running"));
  const Json flat = good.flatten();
  int answers = 0;
  for (const auto& [pointer, old] : flat.items())
    for (const Json& value : std::vector<Json>{nullptr,
                                               "",
                                               "x",
                                               -1,
                                               1.5,
                                               1e300,
                                               UINT64_MAX,
                                               true,
                                               Json::array(),
                                               Json::object(),
                                               {{"a", {1, 2}}}}) {
      Json review = good;
      review[Json::json_pointer(pointer)] = value;
      const ServerAnswer answer = AnswerReview(review.dump(), view_, kNow);
      EXPECT_TRUE(answer.status == 200 || answer.status == 400) << answer.status;
      ++answers;
    }
  EXPECT_GT(answers, 300);
  EXPECT_THAT(Create(JobWithGpus(1)).warnings, IsEmpty());
}

TEST_F(ReviewTest, RefusesWhatTheControllerWouldNotGoBy) {
  const auto why = [&](const std::string& resource, const Json& spec, const Json& before = nullptr,
                       const Json& deleted = nullptr) {
    const bool updates = !before.is_null();
    Json review =
        Review(updates ? "UPDATE" : "CREATE",
               {{"metadata", {{"name", "x"}, {"deletionTimestamp", deleted}}}, {"spec", spec}},
               updates ? Json{{"spec", before}} : Json());
    review["request"]["name"] = "x";
    review["request"]["resource"]["resource"] = resource;
    const Json answer = Ask(review);
    return TextAt(answer, {"response", "status", "message"});
  };
  const Json small = {{"cpu", 1}}, large = {{"cpu", 2}};
  EXPECT_EQ(why("queues", {{"guaranteed", small}, {"limit", large}}), "");
  EXPECT_EQ(why("queues", {{"members", {{"namespaces", {"ads"}}}}, {"maxPriority", -5}}), "");
  EXPECT_THAT(why("queues", {{"members", Json::object()}}),
              HasSubstr("nobody could use the queue"));
  EXPECT_THAT(why("queues", {{"members", {{"groups", Json::array()}}}}), HasSubstr("nobody could"));
  const Json wrong = {{"guaranteed", large}, {"limit", small}};
  EXPECT_THAT(why("queues", wrong), HasSubstr("queues x: spec.guaranteed has 2 cpu"));
  EXPECT_THAT(why("queues", {{"limit", {{"memory", "9e99"}}}}), HasSubstr("more than can be"));
  EXPECT_THAT(why("nodepools", {{"idle", "3651d"}}), HasSubstr("spec.idle must be a duration"));
  EXPECT_THAT(why("nodepools", {{"capacity", {{"nvidia.com/gpu", "9e18"}}}}),
              HasSubstr("spec.capacity: 9e18 of nvidia.com/gpu is more than can be counted"));
  EXPECT_THAT(why("clusterpolicies", {{"spotNotice", "3651d"}}), HasSubstr("at most ten years"));
  EXPECT_EQ(why("clusterpolicies", {{"spotNotice", "3650d"}}), "");
  // An object that was invalid before may get a label, and be deleted.
  EXPECT_EQ(why("queues", wrong, wrong), "");
  EXPECT_EQ(why("queues", wrong, {{"limit", large}}, "2026-02-03T04:05:06Z"), "");
  EXPECT_NE(why("queues", wrong, {{"limit", large}}), "");
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
