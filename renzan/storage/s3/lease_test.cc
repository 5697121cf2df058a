#include "renzan/storage/s3/lease.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <nlohmann/json.hpp>
#include <thread>

#include "renzan/storage/s3/failure_for_test.h"
#include "renzan/storage/s3/fake_store_for_test.h"
#include "renzan/storage/s3/process_identity.h"

namespace renzan::s3 {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Location kLock = {.bucket = FakeStore::kBucket, .key = "dir/.lock"};

// These tests run in real time.
class S3Lease : public testing::Test {
 protected:
  std::unique_ptr<Client> NewClient(double retry_seconds = 120) {
    return std::make_unique<Client>(ReadSettings(store_.environment()), store_.environment(),
                                    SystemClock(),
                                    Client::Options{.retry_seconds = retry_seconds,
                                                    .wait = [](double, const std::stop_token&) {}});
  }
  std::unique_ptr<Lease> Take(const std::string& owner) { return Take(owner, times_); }
  std::unique_ptr<Lease> Take(const std::string& owner, const Lease::Times& times) {
    return std::make_unique<Lease>(*client_, kLock, owner, SystemClock(), times);
  }
  std::unique_ptr<Lease> TakeAtOnce(const std::string& owner) {
    const double begin = SystemClock().MonotonicSeconds();
    std::unique_ptr<Lease> lease = Take(owner, patient_);
    EXPECT_LT(SystemClock().MonotonicSeconds() - begin, patient_.expire_seconds / 2);
    return lease;
  }
  nlohmann::json Stored() {
    return nlohmann::json::parse(store_.Content(kLock.key).value_or("null"));
  }
  void PutLeaseOf(const std::string& owner, const std::string& process) {
    store_.Put(kLock.key,
               nlohmann::json({{"owner", owner}, {"id", "1"}, {"process", process}}).dump());
  }

  FakeStore store_;
  std::unique_ptr<Client> client_ = NewClient();
  Lease::Times times_{.renew_seconds = 0.1, .expire_seconds = 0.4, .poll_seconds = 0.02};
  // The times of an owner that never renews, and of one that waits for long.
  const Lease::Times never_renewed_{
      .renew_seconds = 1000, .expire_seconds = 0.4, .poll_seconds = 0.02};
  const Lease::Times patient_{.renew_seconds = 0.1, .expire_seconds = 5, .poll_seconds = 0.02};
};

TEST_F(S3Lease, AFreshOneIsTakenAndReleased) {
  const auto lease = TakeAtOnce("run 1");
  EXPECT_EQ(Stored()["owner"], "run 1");
  EXPECT_EQ(Stored()["released"], false);
  EXPECT_NO_THROW(lease->Check());
}

TEST_F(S3Lease, AReleasedOneIsTakenAtOnce) {
  TakeAtOnce("run 1").reset();
  EXPECT_EQ(Stored()["released"], true);
  const auto lease = TakeAtOnce("run 2");
  EXPECT_EQ(Stored()["owner"], "run 2");
  EXPECT_EQ(Stored()["released"], false);
  EXPECT_NO_THROW(lease->Check());
}

TEST_F(S3Lease, ALiveOwnerIsNotReplaced) {
  const auto lease = Take("run 1");
  const Error error = FailureOf([&] { Take("run 2", patient_); });
  EXPECT_EQ(error.code(), ErrorCode::kCantCreate);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("run 1"), HasSubstr("s3://bucket/dir"), HasSubstr("checkpoint.dir")));
  EXPECT_NO_THROW(lease->Check());
  EXPECT_EQ(Stored()["owner"], "run 1");
}

TEST_F(S3Lease, ALiveOwnerIsWaitedForWithPatience) {
  std::unique_ptr<Lease> first = Take("run 1", patient_);
  std::jthread ends([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    first.reset();
  });
  const Lease second(*client_, kLock, "run 2", SystemClock(), patient_, {.seconds = 60});
  EXPECT_FALSE(second.took_over());
  EXPECT_EQ(Stored()["owner"], "run 2");
}

TEST_F(S3Lease, PatienceEndsWhenAsked) {
  const auto lease = Take("run 1", patient_);
  int asked = 0;
  const Error error = FailureOf([&] {
    Lease(*client_, kLock, "run 2", SystemClock(), patient_,
          {.seconds = 60, .ends = [&] { return ++asked > 20; }});
  });
  EXPECT_EQ(error.code(), ErrorCode::kCantCreate);
  EXPECT_NO_THROW(lease->Check());
}

TEST_F(S3Lease, ItIsRenewed) {
  const auto lease = Take("run 1");
  const int before = Stored()["renewals"];
  std::this_thread::sleep_for(std::chrono::milliseconds(450));
  EXPECT_GE(Stored()["renewals"], before + 2);
}

TEST_F(S3Lease, ADeadOwnerIsReplacedWhenItsLeaseHasExpired) {
  PutLeaseOf("a run of another machine", "another-boot/1 1 1");
  const double begin = SystemClock().MonotonicSeconds();
  const auto lease = Take("run 2");
  const double waited = SystemClock().MonotonicSeconds() - begin;
  EXPECT_GE(waited, times_.expire_seconds);
  EXPECT_LT(waited, 2 * times_.expire_seconds);
  EXPECT_EQ(Stored()["owner"], "run 2");
}

TEST_F(S3Lease, WhatIsNoLeaseIsReplacedOnlyWhenItStaysTheSame) {
  store_.Put(kLock.key, "no json");
  const double begin = SystemClock().MonotonicSeconds();
  const auto lease = Take("run 2");
  EXPECT_GE(SystemClock().MonotonicSeconds() - begin, times_.expire_seconds);
}

TEST_F(S3Lease, TheFormerOwnerIsTold) {
  auto former = Take("run 1", never_renewed_);
  const auto lease = Take("run 2");
  for (int i = 0; i < 2; ++i) {
    const Error error = FailureOf([&] { former->Check(); });
    EXPECT_EQ(error.code(), ErrorCode::kCantCreate);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("run 2"), HasSubstr("s3://bucket/dir was taken")));
  }
  former.reset();
  EXPECT_EQ(Stored()["owner"], "run 2");
  EXPECT_EQ(Stored()["released"], false) << "only its owner releases it";
  EXPECT_NO_THROW(lease->Check());
}

TEST_F(S3Lease, ALockThatIsRemovedIsLost) {
  const auto lease = Take("run 1", never_renewed_);
  store_.Erase(kLock.key);
  EXPECT_EQ(FailureOf([&] { lease->Check(); }).code(), ErrorCode::kCantCreate);
  EXPECT_THAT(store_.keys(), IsEmpty());
}

TEST_F(S3Lease, ADeadProcessOfThisMachineIsReplacedAtOnce) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const std::string process = ThisProcess();
    ::_exit(::write(pipe[1], process.data(), process.size()) > 0 ? 0 : 1);
  }
  char text[200];
  const ssize_t bytes = ::read(pipe[0], text, sizeof text);
  ASSERT_GT(bytes, 0);
  const std::string process(text, static_cast<size_t>(bytes));
  siginfo_t info;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(IsGone(process)) << "nobody has asked how it ended";
  int status;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  for (const int fd : pipe) ::close(fd);

  EXPECT_TRUE(IsGone(process));
  PutLeaseOf("run 1", process);
  const auto lease = TakeAtOnce("run 2");
  EXPECT_EQ(Stored()["owner"], "run 2");
}

TEST_F(S3Lease, OnlyProcessesOfThisMachineAreKnownToBeGone) {
  const std::string alive = ThisProcess();
  EXPECT_FALSE(IsGone(alive));
  EXPECT_TRUE(IsGone(alive + "1")) << "its number belongs to another process now";
  EXPECT_FALSE(IsGone("x" + alive + "1"));
  EXPECT_FALSE(IsGone(""));
  EXPECT_FALSE(IsGone("  "));
}

TEST_F(S3Lease, AStoreThatIgnoresConditionsIsRefused) {
  // It reads, writes, and then checks both conditions.
  for (const auto& [first, condition] : {std::pair{0, "If-None-Match"}, std::pair{3, "If-Match"}}) {
    SCOPED_TRACE(condition);
    store_.SetPlan([first = first](int index, const std::string&, const std::string&) {
      return index >= first ? Fault::IgnoreConditions() : Fault::None();
    });
    const Error error = FailureOf([&] { Take("run 1"); });
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_THAT(error.what(), AllOf(HasSubstr(condition), HasSubstr(store_.url())));
    EXPECT_THAT(store_.keys(), IsEmpty()) << "nothing stays";
  }
}

TEST_F(S3Lease, AStoreInTroubleIsNotTakenForOneThatIgnoresConditions) {
  for (const Fault& fault : {Fault::CutBefore(), Fault::CutAfter(), Fault::InternalError(),
                             Fault::AnswerAfter(500, "InternalError")})
    for (int n = 0; n < 4; ++n) {
      SCOPED_TRACE(fmt::format("fault {} of request {}", static_cast<int>(fault.kind), n));
      store_.SetPlan([&fault, n](int index, const std::string&, const std::string&) {
        return index == n ? fault : Fault::None();
      });
      ASSERT_NO_THROW(TakeAtOnce("run 1")->Check());
      EXPECT_EQ(Stored()["released"], true);
      store_.Heal();
    }
}

TEST_F(S3Lease, ALostAnswerOfARenewalDoesNotLoseIt) {
  const auto lease = Take("run 1", never_renewed_);
  for (const Fault& fault : {Fault::CutAfter(), Fault::CutInHead(), Fault::CutBefore(),
                             Fault::AnswerAfter(500, "InternalError")}) {
    store_.FailNext(fault);
    EXPECT_NO_THROW(lease->Check());
  }
}

TEST_F(S3Lease, AFailedRenewalThatWasDoneDoesNotLoseIt) {
  client_ = NewClient(/*retry_seconds=*/0);
  auto lease = Take("run 1", never_renewed_);
  for (int i = 0; i < 2; ++i) {
    store_.FailNext(Fault::CutAfter());
    EXPECT_EQ(FailureOf([&] { lease->Check(); }).code(), ErrorCode::kIo) << "it is not known";
    EXPECT_NO_THROW(lease->Check());
  }
  store_.FailNext(Fault::CutAfter());
  EXPECT_EQ(FailureOf([&] { lease->Check(); }).code(), ErrorCode::kIo);
  lease.reset();
  EXPECT_EQ(Stored()["released"], true);
}

TEST_F(S3Lease, AStoreThatIsAwayForAWhile) {
  client_ = NewClient(/*retry_seconds=*/0);
  const auto lease = Take("run 1", {.renew_seconds = 0.02, .expire_seconds = 1000});
  store_.SetPlan([](int index, const std::string&, const std::string&) {
    return index % 2 == 0 ? Fault::CutAfter() : Fault::SlowDown();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_GT(store_.requests().size(), 5u);
  store_.Heal();
  EXPECT_NO_THROW(lease->Check());
  EXPECT_EQ(Stored()["owner"], "run 1");
}

TEST_F(S3Lease, ChecksOfManyThreads) {
  const auto lease = Take("run 1", {.renew_seconds = 0.01, .expire_seconds = 1000});
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 10; ++j) EXPECT_NO_THROW(lease->Check());
    });
}

class S3LeaseRace : public S3Lease, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(, S3LeaseRace, testing::Bool(), [](const auto& tested) {
  return tested.param ? "ForAnExpiredOne" : "ForAFreshOne";
});

TEST_P(S3LeaseRace, ExactlyOneWins) {
  constexpr int kRacers = 8;
  if (GetParam()) PutLeaseOf("a dead run", "another-boot/1 1 1");
  std::atomic<int> winners{0}, losers{0};
  std::latch decided(kRacers);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kRacers; ++i)
      threads.emplace_back([&, i] {
        const std::unique_ptr<Client> client = NewClient();
        std::unique_ptr<Lease> lease;
        try {
          lease = std::make_unique<Lease>(*client, kLock, fmt::format("run {}", i), SystemClock(),
                                          times_);
          ++winners;
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::kCantCreate) << error.what();
          EXPECT_THAT(error.what(), HasSubstr("run "));
          ++losers;
        }
        decided.arrive_and_wait();
        if (lease) {
          EXPECT_NO_THROW(lease->Check());
        }
      });
  }
  EXPECT_EQ(winners, 1);
  EXPECT_EQ(losers, kRacers - 1);
}

}  // namespace
}  // namespace renzan::s3
