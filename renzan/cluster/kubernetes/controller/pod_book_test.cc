#include "renzan/cluster/kubernetes/controller/pod_book.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace renzan::cluster::kubernetes {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

Pod PodOn(const std::string& node) {
  return {.ns = "ads", .name = "job-0-0", .uid = "u", .node = node, .job_uid = "j"};
}

// A lagging watch shows the pod as it was created, after a read has shown it bound: its room must
// not be given away.
TEST(PodBook, APodThatIsBoundStaysSoWhateverIsShownLate) {
  for (const bool by_us : {false, true}) {
    PodBook book;
    if (by_us) {
      book.PutAnswer(PodOn(""));
      book.Bound("u", "n0");
    }
    book.PutAnswer(PodOn("n0"));
    book.Put(PodOn(""));
    EXPECT_THAT(book.OnNode("n0"), SizeIs(1)) << by_us;
    book.Remove("u");
    EXPECT_THAT(book.OnNode("n0"), IsEmpty()) << by_us;
  }
}

// What happened within a second, and what a watch or an answer shows of it.
class PodBookSecond : public testing::Test {
 protected:
  struct Shown {
    bool ended = false;
    int64_t grace_seconds = -1;  // -1: it is not being deleted
  };
  static bool EndedByItself(const std::vector<Shown>& versions) {
    PodBook book;
    for (const Shown& shown : versions) {
      nlohmann::json object = {{"metadata", {{"name", "job-0-0"}, {"uid", "u"}}}};
      if (shown.grace_seconds >= 0)
        object["metadata"].merge_patch(
            {{"deletionTimestamp", fmt::format("2026-01-01T00:00:{:02}Z", shown.grace_seconds)},
             {"deletionGracePeriodSeconds", shown.grace_seconds}});
      if (shown.ended)
        object["status"] = {
            {"phase", "Succeeded"},
            {"containerStatuses",
             {{{"state", {{"terminated", {{"finishedAt", "2026-01-01T00:00:00Z"}}}}}}}}};
      book.Put(PodFrom(object));
    }
    return book.pods().at("u").ended_by_itself;
  }
  const Shown runs_ = {}, ended_ = {.ended = true}, told_ = {.grace_seconds = 30},
              told_and_ended_ = {.ended = true, .grace_seconds = 30},
              granted_none_ = {.ended = true, .grace_seconds = 0};
};

TEST_F(PodBookSecond, APodThatEndedBeforeItWasDeletedHasEndedByItself) {
  EXPECT_TRUE(EndedByItself({runs_, ended_, granted_none_}));
  EXPECT_TRUE(EndedByItself({ended_, told_and_ended_}));
  // The end was not shown by itself.
  EXPECT_TRUE(EndedByItself({runs_, granted_none_}));
  EXPECT_TRUE(EndedByItself({granted_none_}));
  EXPECT_TRUE(EndedByItself({granted_none_, granted_none_}));
  // A watch shows late what an answer has shown before.
  EXPECT_TRUE(EndedByItself({told_and_ended_, ended_}));
}

TEST_F(PodBookSecond, APodThatWasToldFirstHasNot) {
  EXPECT_FALSE(EndedByItself({runs_, told_, told_and_ended_}));
  EXPECT_FALSE(EndedByItself({runs_, told_and_ended_}));
  // Its kubelet confirms that it has ended.
  EXPECT_FALSE(EndedByItself({told_, told_and_ended_, granted_none_}));
  EXPECT_FALSE(EndedByItself({told_, granted_none_}));
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
