#include "renzan/cluster/kubernetes/admission/review_testing.h"

namespace renzan::cluster::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

TEST_F(ReviewTest, AParentTakesNoJobs) {
  Json vision = QueueObject("vision");
  vision["spec"]["parent"] = "research";
  SeeQueues(Json::array({QueueObject("research"), vision}));
  EXPECT_EQ(Create(JobObject({{"queue", "research"}})).message,
            "queue 'research' is a parent, and takes no jobs itself: use vision");
  EXPECT_TRUE(Create(JobObject({{"queue", "vision"}})).allowed);
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

}  // namespace
}  // namespace renzan::cluster::kubernetes
