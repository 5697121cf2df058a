// Where a stream is: whoever is cut off goes on there.

#include "renzan/cluster/local/server/log_stream.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <utility>

#include "renzan/base/file/file.h"

namespace renzan::cluster::local {
namespace {

using ::testing::HasSubstr;

class LogStreamTest : public testing::Test {
 protected:
  ~LogStreamTest() override { ::close(stop_fd_); }

  struct Got {
    std::string text = {};
    std::optional<spec::OutputPlace> place = {};
    bool is_complete = false;
  };

  std::string PathOf(int attempt) const {
    const std::string attempt_dir = fmt::format("{}/1/attempt-{}", jobs_.path(), attempt);
    CreateDirectories(attempt_dir);
    return attempt_dir + "/worker-0.log";
  }
  // Files of 10 bytes, of which `files` are kept.
  LogWriter Writer(int attempt, int files) const {
    return {PathOf(attempt), 10, files, ::geteuid(), ::getegid()};
  }

  // Receives at most so many bytes, as over a connection that breaks then.
  Got Receive(LogRequest request, size_t at_most) {
    request.jobs_dir = jobs_.path();
    request.job = 1;
    request.owner = ::geteuid();
    request.follow = request.later_attempts = request.framed = true;
    const auto job_now = [this]() -> std::optional<LogStream::JobNow> {
      if (meanwhile_) std::exchange(meanwhile_, nullptr)();
      if (daemon_is_ending_) return std::nullopt;
      return LogStream::JobNow{.attempts = attempts_, .ended = ended_};
    };
    LogStream stream(request, job_now, -1, stop_fd_);
    Got got;
    spec::FrameReader frames;
    std::string block(64, 0);
    while (const size_t bytes = stream.Read(block.data(), block.size())) {
      const size_t arrived = std::min(bytes, at_most);
      at_most -= arrived;
      frames.Add(std::string_view(block).substr(0, arrived),
                 [&](std::string_view text, const spec::OutputPlace& place) {
                   got.text += text;
                   got.place = place;
                 });
      if (at_most == 0) break;
    }
    got.is_complete = frames.is_complete();
    return got;
  }
  Got Receive(LogRequest request) { return Receive(std::move(request), 1 << 20); }
  Got GoOn(const Got& before) {
    return Receive(
        {.attempt = static_cast<int>(before.place->attempt), .from = before.place->offset});
  }

  TemporaryDirectory jobs_;
  const int stop_fd_ = ::eventfd(0, EFD_CLOEXEC);
  int attempts_ = 1;
  bool ended_ = true, daemon_is_ending_ = false;
  std::function<void()> meanwhile_;  // when a stream has read everything
};

TEST_F(LogStreamTest, GoesOnWhereverItWasCutOff) {
  Writer(0, 9).Write("one\ntwo\nthree\nfour\nfive\nsix\n");
  Writer(1, 9).Write("seven\neight\nnine\nten\n");
  attempts_ = 2;
  const std::string all = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n";
  const Got whole = Receive({});
  ASSERT_EQ(whole.text, all);
  ASSERT_TRUE(whole.is_complete);
  for (size_t bytes = spec::kFrameHeadBytes; bytes < 600; bytes += 7) {
    const Got before = Receive({}, bytes);
    ASSERT_TRUE(before.place);
    EXPECT_EQ(before.text + GoOn(before).text, all) << bytes;
  }
}

TEST_F(LogStreamTest, GoesOnAfterTheFilesHaveMoved) {
  LogWriter writer = Writer(0, 9);
  writer.Write("one\ntwo\nsix\nten\n");
  const Got tail = Receive({.tail = 1});
  EXPECT_EQ(tail.text, "ten\n");
  EXPECT_EQ(tail.place->offset, 16);
  meanwhile_ = [&] { writer.Write("three\nfour\nfive\n"); };
  const Got more = GoOn(tail);
  EXPECT_EQ(more.text, "three\nfour\nfive\n");
  EXPECT_EQ(more.place->offset, 32);
  writer.Write("seven\neight\n");
  EXPECT_EQ(GoOn(more).text, "seven\neight\n");
}

TEST_F(LogStreamTest, CountsWhatIsNoLongerThere) {
  LogWriter writer = Writer(0, 2);
  writer.Write("one\ntwo\nthree\nfour\nfive\n");
  const Got all = Receive({});
  EXPECT_THAT(all.text, HasSubstr("the first 2 lines of this output (8 bytes) were dropped"));
  EXPECT_EQ(all.place->offset, 24);
  const std::string output = "three\nfour\nfive\n";
  for (size_t bytes = spec::kFrameHeadBytes; bytes < 300; bytes += 7) {
    const Got before = Receive({}, bytes);
    const std::string both = before.text + GoOn(before).text;
    EXPECT_TRUE(both.ends_with(output)) << both;
    EXPECT_TRUE(all.text.starts_with(both.substr(0, both.size() - output.size()))) << both;
  }
  writer.Write("six\nseven\n");
  EXPECT_EQ(GoOn(all).text, "six\nseven\n");
  writer.Write("eight\nnine\nten\n11\n12\n13\n14\n15\n");
  EXPECT_EQ(GoOn(all).text,
            "[renzan: output was dropped here: the job writes it faster than it is read]\n"
            "11\n12\n13\n14\n15\n");
}

TEST_F(LogStreamTest, AFollowerThatIsSlowerThanTheJobLearnsOfTheGap) {
  LogWriter writer = Writer(0, 2);
  writer.Write("one\ntwo\nthree\nfour\nfive\n");
  LogStream stream(
      {.jobs_dir = jobs_.path(), .job = 1, .owner = ::geteuid(), .follow = true},
      [] { return LogStream::JobNow{.attempts = 1, .ended = true}; }, -1, -1);
  writer.Write("six\nseven\neight\nnine\n");
  std::string all(1000, 0);
  size_t size = 0;
  while (const size_t got = stream.Read(all.data() + size, all.size() - size)) size += got;
  EXPECT_EQ(all.substr(0, size),
            "[renzan: the first 2 lines of this output (8 bytes) were dropped: it was too long]\n"
            "three\nfour\nfive\n"
            "[renzan: output was dropped here: the job writes it faster than it is read]\n"
            "eight\nnine\n");
}

TEST_F(LogStreamTest, IsCompleteOnlyIfTheJobHasEnded) {
  Writer(0, 9).Write("one\n");
  daemon_is_ending_ = true;
  const Got cut_off = Receive({});
  EXPECT_EQ(cut_off.text, "one\n");
  EXPECT_FALSE(cut_off.is_complete);
  daemon_is_ending_ = ended_ = false;
  ::eventfd_write(stop_fd_, 1);
  const Got stopped = GoOn(cut_off);
  EXPECT_EQ(stopped.text, "");
  EXPECT_FALSE(stopped.is_complete);
  EXPECT_EQ(stopped.place, cut_off.place);
  ended_ = true;
  meanwhile_ = [&] { Writer(0, 9).Write("two\n"); };
  const Got rest = GoOn(stopped);
  EXPECT_EQ(rest.text, "two\n");
  EXPECT_TRUE(rest.is_complete);
}

TEST_F(LogStreamTest, ReadsTheRestOfAnAttemptWhenTheNextHasStarted) {
  Writer(0, 9).Write("one\n");
  meanwhile_ = [&] {
    Writer(0, 9).Write("two\n");
    Writer(1, 9).Write("six\n");
    attempts_ = 2;
  };
  EXPECT_EQ(Receive({}).text, "one\ntwo\nsix\n");
}

TEST_F(LogStreamTest, SaysWhereItBeginsBeforeThereIsOutput) {
  const Got nothing = Receive({});
  ASSERT_TRUE(nothing.place);
  EXPECT_EQ(*nothing.place, (spec::OutputPlace{.attempt = 0, .offset = 0}));
  Writer(0, 2).Write("one\n");
  EXPECT_EQ(GoOn(nothing).text, "one\n");
}

}  // namespace
}  // namespace renzan::cluster::local
