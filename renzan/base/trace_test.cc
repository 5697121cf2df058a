#include "renzan/base/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace renzan {
namespace {

TEST(Trace, HoldsTheSpansOfAllThreads) {
  { const TraceSpan before("before"); }
  StartTrace();
  NameTraceThread("main");
  {
    const TraceSpan outer("outer");
    std::thread other([] {
      NameTraceThread("other");
      const TraceSpan span("of other");
    });
    other.join();
    const TraceSpan inner("inner");
  }
  const Trace trace = StopTrace();
  { const TraceSpan after("after"); }

  std::vector<std::string> seen;
  for (const TraceEvent& event : trace.events) {
    seen.push_back(trace.threads[static_cast<size_t>(event.thread)] + ": " + event.name);
    EXPECT_LE(event.begin_ns, event.end_ns);
  }
  EXPECT_THAT(seen, testing::UnorderedElementsAre("main: inner", "main: outer", "other: of other"));
  const auto find = [&](const std::string& name) {
    return *std::find_if(trace.events.begin(), trace.events.end(),
                         [&](const TraceEvent& event) { return event.name == name; });
  };
  EXPECT_LE(find("outer").begin_ns, find("of other").begin_ns);
  EXPECT_LE(find("of other").end_ns, find("inner").begin_ns);
  EXPECT_LE(find("inner").end_ns, find("outer").end_ns);
}

TEST(Trace, StartsEmpty) {
  StartTrace();
  { const TraceSpan span("first"); }
  StartTrace();
  EXPECT_TRUE(StopTrace().events.empty());
}

TEST(Trace, ASpanThatOutlastsItIsNotPartOfIt) {
  StartTrace();
  {
    const TraceSpan span("long");
    EXPECT_TRUE(StopTrace().events.empty());
    StartTrace();
  }
  EXPECT_TRUE(StopTrace().events.empty());
}

}  // namespace
}  // namespace renzan
