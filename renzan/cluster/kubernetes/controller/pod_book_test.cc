#include "renzan/cluster/kubernetes/controller/pod_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace renzan::cluster::kubernetes
