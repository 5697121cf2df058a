#include "renzan/cluster/kubernetes/objects/pod.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace renzan::cluster::kubernetes {
namespace {

using nlohmann::json;

Pod EndedPod(const std::string& reason, const std::string& message) {
  return PodFrom(
      {{"spec", {{"containers", {{{"name", "main"}}}}}},
       {"status",
        {{"phase", "Failed"},
         {"containerStatuses",
          {{{"state",
             {{"terminated", {{"exitCode", 69}, {"reason", reason}, {"message", message}}}}}}}}}}});
}

TEST(Pod, ItsLastWordsSayHowItEnded) {
  const Pod pod = EndedPod("Error", R"({"exit_code": 69, "message": "no port"})"
                                    "\n");
  EXPECT_TRUE(pod.ended);
  EXPECT_EQ(pod.exit_code, 69);
  EXPECT_EQ(pod.reason, "no port");
}

TEST(Pod, TheKubeletsWordIsKept) {
  EXPECT_EQ(EndedPod("OOMKilled", R"({"exit_code": 137, "message": "running at step 7"})").reason,
            "OOMKilled: running at step 7");
  for (const char* message : {"", "free words", "[1]", R"({"message": 7})", R"({"message": ""})"})
    EXPECT_EQ(EndedPod("Error", message).reason, "Error") << message;
}

TEST(Pod, LastWordsAreOneShortLine) {
  EXPECT_EQ(EndedPod("Error", R"({"message": "a\nb\tc"})").reason, "a b c");
  const std::string reason =
      EndedPod("Error", json({{"message", "x" + std::string(4000, 'a')}}).dump()).reason;
  EXPECT_EQ(reason.size(), 303);
  std::string umlauts = "x";
  for (int i = 0; i < 1000; ++i) umlauts += "ä";
  EXPECT_EQ(EndedPod("Error", json({{"message", umlauts}}).dump()).reason,
            umlauts.substr(0, 299) + "...");
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
