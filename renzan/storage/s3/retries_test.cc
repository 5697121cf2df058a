// Requests that fail and are retried.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "renzan/storage/s3/client_for_test.h"

namespace renzan::s3 {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class S3Retries : public ClientTest {};

// Faults after which the same request can succeed.
const std::vector<Fault> kTransient = {Fault::CutBefore(),
                                       Fault::CutAfter(),
                                       Fault::CutInHead(),
                                       Fault::CutInBody(),
                                       Fault::InternalError(),
                                       Fault::SlowDown(),
                                       Fault::TooManyRequests(),
                                       Fault::Answer(408, "RequestTimeout"),
                                       Fault::Answer(502, "", "<html>Bad Gateway</html>"),
                                       Fault::AnswerAfter(500, "InternalError"),
                                       Fault::AnswerAfter(504, "")};

std::string NameOf(const Fault& fault) {
  return fmt::format("fault {} {} {}", static_cast<int>(fault.kind), fault.status, fault.code);
}

TEST_F(S3Retries, EveryRequestIsTriedAgain) {
  const std::string part(100000, 'p');
  struct Case {
    std::string name;
    std::function<void()> prepare, act;
  };
  std::string upload, range(2, ' ');
  std::vector<std::string> etags;
  const std::vector<Case> cases = {
      {"Head", nullptr, [&] { EXPECT_EQ(client_->Head(At("a"))->bytes, 3u); }},
      {"Get", nullptr, [&] { EXPECT_EQ(client_->Get(At("a"))->text, "abc"); }},
      {"GetRange", nullptr,
       [&] {
         client_->GetRange(At("a"), "", 1, BytesOf(range));
         EXPECT_EQ(range, "bc");
       }},
      {"Put", nullptr,
       [&] {
         EXPECT_TRUE(client_->Put(At("b"), "new"));
         EXPECT_EQ(Content("b"), "new");
       }},
      {"Delete", nullptr,
       [&] {
         client_->Delete(At("b"));
         EXPECT_EQ(Content("b"), std::nullopt);
       }},
      {"List", nullptr,
       [&] { EXPECT_EQ(client_->List(FakeStore::kBucket, "", false).objects.size(), 1u); }},
      {"HasAny", nullptr, [&] { EXPECT_TRUE(client_->HasAny(FakeStore::kBucket, "a")); }},
      {"BeginUpload", nullptr, [&] { upload = client_->BeginUpload(At("c")); }},
      {"PutPart", nullptr,
       [&] { etags = {client_->PutPart(At("c"), upload, 1, part, std::stop_token())}; }},
      {"CompleteUpload", nullptr,
       [&] {
         client_->CompleteUpload(At("c"), upload, etags, part.size());
         EXPECT_EQ(Content("c"), part);
       }},
      {"AbortUpload", [&] { upload = client_->BeginUpload(At("d")); },
       [&] { client_->AbortUpload(At("d"), upload); }},
  };
  for (const Fault& fault : kTransient) {
    for (const std::string& key : store_.keys()) store_.Erase(key);
    store_.Put("a", "abc");
    for (const Case& test : cases) {
      SCOPED_TRACE(NameOf(fault) + ", " + test.name);
      if (test.prepare) test.prepare();
      waits_.clear();
      store_.FailNext(fault);
      ASSERT_NO_THROW(test.act());
      EXPECT_EQ(waits_.size(), 1u);
    }
  }
}

// Lost answers, on a new connection and on one that was used before, which libcurl treats
// differently.
class S3LostAnswers : public ClientTest, public testing::WithParamInterface<bool> {
 protected:
  void Lose(const Fault& fault) {
    client_ = NewClient();
    if (GetParam()) client_->Head(At("another"));
    store_.FailNext(fault);
  }
};
INSTANTIATE_TEST_SUITE_P(, S3LostAnswers, testing::Bool(), [](const auto& tested) {
  return tested.param ? "UsedConnection" : "NewConnection";
});

TEST_P(S3LostAnswers, APutIfAbsentOfOurs) {
  for (const Fault& fault : kTransient)
    for (const std::string body : {"ours", ""}) {
      SCOPED_TRACE(NameOf(fault) + " " + body);
      store_.Erase("a");
      Lose(fault);
      const std::optional<std::string> etag = client_->Put(At("a"), body, Condition::Absent());
      ASSERT_TRUE(etag);
      EXPECT_EQ(client_->Head(At("a"))->etag, *etag);
      EXPECT_EQ(Content("a"), body);
    }
}

TEST_F(S3Retries, TwoPutsAtTheSameTime) {
  for (const Condition& condition : {Condition::Absent(), Condition::Matches("\"1\"")}) {
    store_.FailNext(Fault::Answer(409, "ConditionalRequestConflict"));
    EXPECT_NO_THROW(client_->Put(At("a"), "1", condition));
    EXPECT_EQ(store_.requests().size(), 2u);
  }
}

TEST_P(S3LostAnswers, APutIfAbsentOfAnother) {
  store_.Put("a", "theirs");
  for (const Fault& fault : kTransient) {
    SCOPED_TRACE(NameOf(fault));
    Lose(fault);
    EXPECT_EQ(client_->Put(At("a"), "ours", Condition::Absent()), std::nullopt);
    EXPECT_EQ(Content("a"), "theirs");
  }
}

TEST_P(S3LostAnswers, APutIfMatchesOfOurs) {
  for (const Fault& fault : kTransient) {
    SCOPED_TRACE(NameOf(fault));
    store_.Put("a", "before");
    const std::string before = client_->Head(At("a"))->etag;
    Lose(fault);
    const std::optional<std::string> etag =
        client_->Put(At("a"), "ours", Condition::Matches(before));
    ASSERT_TRUE(etag);
    EXPECT_EQ(client_->Head(At("a"))->etag, *etag);
    EXPECT_EQ(Content("a"), "ours");
  }
}

TEST_P(S3LostAnswers, APutIfMatchesOfAnother) {
  store_.Put("a", "before");
  const std::string before = client_->Head(At("a"))->etag;
  for (const Fault& fault : kTransient) {
    SCOPED_TRACE(NameOf(fault));
    store_.Put("a", "theirs");
    Lose(fault);
    EXPECT_EQ(client_->Put(At("a"), "ours", Condition::Matches(before)), std::nullopt);
    EXPECT_EQ(Content("a"), "theirs");
    store_.Erase("a");
    Lose(fault);
    EXPECT_EQ(client_->Put(At("a"), "ours", Condition::Matches(before)), std::nullopt);
    EXPECT_EQ(Content("a"), std::nullopt);
  }
}

TEST_P(S3LostAnswers, ACompletedUpload) {
  std::vector<Fault> faults = kTransient;
  // AWS sends the status before it knows the outcome.
  faults.push_back(Fault::Answer(200, "InternalError"));
  faults.push_back(Fault::AnswerAfter(200, "InternalError"));
  for (const Fault& fault : faults) {
    SCOPED_TRACE(NameOf(fault));
    store_.Erase("a");
    const std::string upload = client_->BeginUpload(At("a"));
    const std::string etag = client_->PutPart(At("a"), upload, 1, "ours", std::stop_token());
    Lose(fault);
    ASSERT_NO_THROW(client_->CompleteUpload(At("a"), upload, {etag}, 4));
    EXPECT_EQ(Content("a"), "ours");
    EXPECT_EQ(store_.unfinished_uploads(), 0u);
  }
}

TEST_P(S3LostAnswers, AnUploadThatAnotherHasAborted) {
  for (const Fault& fault : kTransient)
    for (const bool replaced : {false, true}) {
      SCOPED_TRACE(NameOf(fault));
      store_.Erase("a");
      if (replaced) store_.Put("a", "another's");
      const std::string upload = client_->BeginUpload(At("a"));
      const std::string etag = client_->PutPart(At("a"), upload, 1, "ours", std::stop_token());
      client_->AbortUpload(At("a"), upload);
      Lose(fault);
      EXPECT_THAT(FailureOf([&] { client_->CompleteUpload(At("a"), upload, {etag}, 4); }).what(),
                  HasSubstr("NoSuchUpload"));
    }
}

TEST_F(S3Retries, ItWaitsLongerAndLongerUntilTheDeadline) {
  store_.SetPlan([](int, const std::string&, const std::string&) { return Fault::SlowDown(); });
  const double begin = clock_.seconds;
  const Error error = FailureOf([&] { client_->Put(At("a"), "1"); });
  EXPECT_EQ(error.code(), ErrorCode::kIo);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("PUT s3://bucket/a"), HasSubstr(store_.url()),
                                  HasSubstr(fmt::format("{} attempts", waits_.size() + 1)),
                                  HasSubstr("503, SlowDown"), HasSubstr("AWS_ENDPOINT_URL")));
  EXPECT_LE(clock_.seconds - begin, 120);
  EXPECT_GE(clock_.seconds - begin, 115);
  for (size_t i = 0; i < waits_.size(); ++i)
    EXPECT_LE(waits_[i], std::min(5.0, 0.1 * std::exp2(static_cast<double>(i))));
  EXPECT_GT(*std::max_element(waits_.begin(), waits_.end()), 3);
  EXPECT_LT(*std::min_element(waits_.begin() + 6, waits_.end()), 2) << "not all at one time";
}

TEST_F(S3Retries, WithoutTimeForRetriesTheFirstErrorIsFinal) {
  options_.retry_seconds = 0;
  client_ = NewClient();
  store_.FailNext(Fault::CutBefore());
  EXPECT_EQ(FailureOf([&] { client_->Get(At("a")); }).code(), ErrorCode::kIo);
  EXPECT_EQ(store_.requests().size(), 1u);
  EXPECT_NO_THROW(client_->Get(At("a")));
}

TEST_F(S3Retries, RetriesHaveABudget) {
  int waits = 0;  // in which no time passes
  options_.wait = [&](double, const std::stop_token&) {
    if (++waits > 1000) clock_.seconds += 1000;
  };
  client_ = NewClient();
  const auto fail = [&] {
    store_.SetPlan([](int, const std::string&, const std::string&) { return Fault::SlowDown(); });
    const Error error = FailureOf([&] { client_->Get(At("a")); });
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_THAT(error.what(), HasSubstr(store_.url()));
    return store_.requests().size();
  };
  EXPECT_EQ(fail(), RetryBudget::kTokens + 1);
  EXPECT_EQ(fail(), 1u);
  store_.Heal();
  for (int i = 0; i < 11; ++i) client_->Get(At("a"));
  EXPECT_EQ(fail(), 3u) << "eleven successes are worth two retries";
}

TEST_F(S3Retries, NobodyListens) {
  std::string url;
  {
    const FakeStore gone;
    url = gone.url();
  }
  Settings settings = client_->settings();
  settings.endpoint = url;
  Client client(settings, environment(), clock_, options_);
  const Error error = FailureOf([&] { client.Get(At("a")); });
  EXPECT_EQ(error.code(), ErrorCode::kIo);
  EXPECT_THAT(error.what(), HasSubstr(url));
  EXPECT_GT(waits_.size(), 10u);
}

TEST_F(S3Retries, AStopEndsRetries) {
  std::stop_source stop;
  options_.wait = [&](double, const std::stop_token&) { stop.request_stop(); };
  client_ = NewClient();
  store_.SetPlan([](int, const std::string&, const std::string&) { return Fault::SlowDown(); });
  const auto put = [&] { client_->Put(At("a"), "1", {}, stop.get_token()); };
  const Error error = FailureOf(put);
  EXPECT_EQ(error.code(), ErrorCode::kTempFail);
  EXPECT_THAT(error.what(), HasSubstr("PUT s3://bucket/a was cancelled"));
  EXPECT_EQ(store_.requests().size(), 1u);
  store_.Heal();
  EXPECT_EQ(FailureOf(put).code(), ErrorCode::kTempFail);
  EXPECT_EQ(store_.requests().size(), 0u) << "nothing is begun after a stop";
}

TEST_F(S3Retries, ExpiredCredentialsAreReadAgain) {
  const std::vector<std::function<void()>> requests = {[&] { client_->Get(At("a")); },
                                                       [&] { client_->Head(At("a")); },
                                                       [&] { client_->Put(At("a"), "1"); }};
  for (const auto& request : requests) {
    access_key_ = "OLD";
    store_.SetAccessKey("OLD");
    client_ = NewClient();
    client_->Get(At("a"));
    access_key_ = "NEW";
    store_.SetAccessKey("NEW");
    store_.FailNext(Fault::ExpiredToken());
    EXPECT_NO_THROW(request());
    ASSERT_EQ(store_.requests().size(), 2u);
    EXPECT_TRUE(waits_.empty());
    EXPECT_THAT(store_.requests()[1].Header("authorization"), HasSubstr("Credential=NEW/"));
  }
}

TEST_F(S3Retries, WhyHeadIsRefusedAGetTells) {
  client_->Put(At("a"), "1");
  struct Case {
    Fault get;
    std::string said;
  };
  for (const Case& test : {Case{Fault::Answer(403, "SignatureDoesNotMatch"), "secret key of "},
                           Case{Fault::ExpiredToken(), "have expired: renew them"},
                           // None of these explains more than the answer to HEAD.
                           Case{Fault::None(), "are wrong, or do not allow it"},
                           Case{Fault::Answer(404, "NoSuchKey"), "are wrong, or do not allow it"},
                           Case{Fault::SlowDown(), "are wrong, or do not allow it"},
                           Case{Fault::CutBefore(), "are wrong, or do not allow it"}}) {
    SCOPED_TRACE(test.said);
    store_.SetPlan([&](int index, const std::string&, const std::string&) {
      return index == 0 ? Fault::AccessDenied() : test.get;
    });
    const Error error = FailureOf([&] { client_->Head(At("a")); });
    EXPECT_EQ(error.code(), ErrorCode::kNoPermission);
    EXPECT_THAT(error.what(), HasSubstr(test.said));
    EXPECT_EQ(store_.requests().size(), 2u);
    EXPECT_TRUE(waits_.empty());
  }
}

TEST_F(S3Retries, OldCredentialsAreNotTriedTwice) {
  for (const Fault& fault : {Fault::ExpiredToken(), Fault::Answer(403, "SignatureDoesNotMatch"),
                             Fault::Answer(403, "InvalidAccessKeyId")}) {
    store_.FailNext(fault);
    EXPECT_EQ(FailureOf([&] { client_->Get(At("a")); }).code(), ErrorCode::kNoPermission);
    EXPECT_EQ(store_.requests().size(), 1u);
  }
}

TEST_F(S3Retries, ATruncatedBodyIsReadAgain) {
  const std::string content = std::string(300000, 'x') + "end";
  client_->Put(At("a"), content);
  store_.SetPlan([](int index, const std::string&, const std::string&) {
    return index < 2 ? Fault::CutInBody() : Fault::None();
  });
  EXPECT_EQ(client_->Get(At("a"))->text, content);
  EXPECT_EQ(store_.requests().size(), 3u);
  std::string out(200003, ' ');
  store_.FailNext(Fault::CutInBody());
  client_->GetRange(At("a"), "", 100000, BytesOf(out));
  EXPECT_EQ(out, content.substr(100000));
  EXPECT_EQ(store_.requests().size(), 2u);
}

}  // namespace
}  // namespace renzan::s3
