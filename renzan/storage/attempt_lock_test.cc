#include "renzan/storage/attempt_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr AttemptLockTimes kQuick{.patience_seconds = 20, .poll_seconds = 0.05};

// A process that holds the lock until a signal ends it.
class Holder {
 public:
  Holder(const std::string& dir, const JobAttempt& self, bool obeys = true) {
    int ready[2];
    CHECK(::pipe(ready) == 0);
    pid_ = ::fork();
    CHECK(pid_ >= 0);
    if (pid_ == 0) {
      if (!obeys) ::signal(SIGTERM, SIG_IGN);
      const auto lock = LockForAttempt(dir, "the holder", self, {}, kQuick);
      if (::write(ready[1], "y", 1) != 1) _exit(1);
      for (;;) ::pause();
    }
    char answer;
    CHECK(::read(ready[0], &answer, 1) == 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Holder() {
    if (!ended()) ::kill(pid_, SIGKILL);
    if (!ended_) ::waitpid(pid_, nullptr, 0);
  }

  bool ended() {
    ended_ = ended_ || ::waitpid(pid_, &status_, WNOHANG) == pid_;
    return ended_;
  }
  // The signal that ended it.
  int signal() {
    if (!ended_) ended_ = ::waitpid(pid_, &status_, 0) == pid_;
    return WIFSIGNALED(status_) ? WTERMSIG(status_) : 0;
  }

 private:
  pid_t pid_ = 0;
  bool ended_ = false;
  int status_ = 0;
};

Error FailureOf(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::kSoftware, "no failure");
}

TEST(AttemptLock, AnEarlierAttemptIsAskedToStop) {
  const TemporaryDirectory dir;
  Holder holder(dir.path(), {.job = "12", .attempt = 0});
  const auto lock = LockForAttempt(dir.path(), "me", {.job = "12", .attempt = 2}, {}, kQuick);
  EXPECT_EQ(holder.signal(), SIGTERM);
  EXPECT_NO_THROW(lock->Check());
}

TEST(AttemptLock, OthersAreNotDisturbed) {
  const TemporaryDirectory dir;
  Holder holder(dir.path(), {.job = "12", .attempt = 1});
  for (const JobAttempt& other :
       {JobAttempt{.job = "13", .attempt = 2}, JobAttempt{.job = "12", .attempt = 0}}) {
    const Error error = FailureOf([&] { LockForAttempt(dir.path(), "me", other, {}, kQuick); });
    EXPECT_EQ(error.code(), ErrorCode::kCantCreate);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("another run"), HasSubstr("the holder")));
  }
  EXPECT_FALSE(holder.ended());
}

TEST(AttemptLock, OneThatDoesNotStopIsATemporaryFailure) {
  const TemporaryDirectory dir;
  Holder holder(dir.path(), {.job = "12", .attempt = 0}, /*obeys=*/false);
  const JobAttempt next{.job = "12", .attempt = 1};
  const Error error =
      FailureOf([&] { LockForAttempt(dir.path(), "me", next, {}, {.patience_seconds = 0.1}); });
  EXPECT_EQ(error.code(), ErrorCode::kTempFail);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("earlier attempt"), HasSubstr("the holder")));
  const JobAttempt after{.job = "12", .attempt = 2};
  const Error stopped =
      FailureOf([&] { LockForAttempt(dir.path(), "me", after, [] { return true; }); });
  EXPECT_EQ(stopped.code(), ErrorCode::kTempFail);
  EXPECT_THAT(stopped.what(), HasSubstr("stopped while waiting"));
  EXPECT_FALSE(holder.ended());
}

TEST(AttemptLock, WhatAnEarlierJobLeftDoesNotMakeARunItsAttempt) {
  const TemporaryDirectory dir;
  LockForAttempt(dir.path(), "me", {.job = "12", .attempt = 0}).reset();
  Holder plain(dir.path(), {});
  const Error error =
      FailureOf([&] { LockForAttempt(dir.path(), "me", {.job = "12", .attempt = 1}, {}, kQuick); });
  EXPECT_EQ(error.code(), ErrorCode::kCantCreate);
  EXPECT_FALSE(plain.ended());
}

TEST(AttemptLock, WhatIsNoRequestOfALaterAttemptChangesNothing) {
  const TemporaryDirectory dir;
  Holder holder(dir.path(), {.job = "12", .attempt = 3});
  for (const char* text : {"", "attempt 4", "attempt 4 of job 13", "attempt 4 of job 112",
                           "attempt x of job 12", "attempt 3 of job 12"}) {
    WriteFileAtomically(dir / ".attempt", text);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_FALSE(holder.ended()) << text;
  }
  WriteFileAtomically(dir / ".attempt", "attempt 4 of job 12");
  EXPECT_EQ(holder.signal(), SIGTERM);
}

TEST(AttemptLock, ARequestThatCannotBeWrittenKeepsNobodyFromGoingOn) {
  const TemporaryDirectory dir;
  LockForAttempt(dir.path(), "the one before", {.job = "12", .attempt = 0}).reset();
  CreateDirectories(dir / ".attempt");
  EXPECT_NO_THROW(LockForAttempt(dir.path(), "me", {.job = "12", .attempt = 1})->Check());
}

TEST(AttemptLock, TheJobSystemSaysWhichAttemptThisIs) {
  ::unsetenv("RENZAN_JOB_ID");
  ::unsetenv("RENZAN_ATTEMPT");
  EXPECT_TRUE(JobAttempt::FromEnvironment().job.empty());
  ::setenv("RENZAN_JOB_ID", "team/train", 1);
  ::setenv("RENZAN_ATTEMPT", "7", 1);
  EXPECT_EQ(JobAttempt::FromEnvironment().job, "team/train");
  EXPECT_EQ(JobAttempt::FromEnvironment().attempt, 7);
}

}  // namespace
}  // namespace renzan
