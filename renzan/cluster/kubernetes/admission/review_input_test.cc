// Reviews of values that no client should send, and of objects other than jobs.

#include "renzan/cluster/kubernetes/admission/review_testing.h"

namespace renzan::cluster::kubernetes {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

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
