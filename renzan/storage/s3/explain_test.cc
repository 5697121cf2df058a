#include "renzan/storage/s3/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/clock.h"
#include "renzan/storage/s3/client.h"
#include "renzan/storage/s3/fake_store_for_test.h"

namespace renzan::s3 {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Case {
  int status;
  std::string code;
  ErrorCode expected;
  std::string what_to_do;
};

// A proxy's HTML page has no error code.
const std::vector<Case> kCases = {
    {404, "NoSuchBucket", ErrorCode::kNoInput, "create the bucket 'bucket', or correct its name"},
    {404, "NoSuchKey", ErrorCode::kNoInput, "check the path"},
    {404, "NoSuchUpload", ErrorCode::kIo, "this upload was aborted, perhaps by"},
    {400, "InvalidPart", ErrorCode::kIo, "lost a part of this upload: try again"},
    {404, "", ErrorCode::kNoInput, "check the path"},
    {403, "RequestTimeTooSkewed", ErrorCode::kConfig, "2027-01-15T08:00:00Z"},
    {403, "RequestExpired", ErrorCode::kConfig, "correct it (with NTP)"},
    {403, "SignatureDoesNotMatch", ErrorCode::kNoPermission,
     "the secret key of AWS_ACCESS_KEY_ID is wrong"},
    {403, "InvalidAccessKeyId", ErrorCode::kNoPermission,
     "does not know the credentials of AWS_ACCESS_KEY_ID"},
    {400, "InvalidToken", ErrorCode::kNoPermission,
     "does not know the credentials of AWS_ACCESS_KEY_ID"},
    {400, "ExpiredToken", ErrorCode::kNoPermission,
     "the credentials of AWS_ACCESS_KEY_ID have expired: renew them"},
    {400, "TokenRefreshRequired", ErrorCode::kNoPermission, "renew them"},
    {403, "AccessDenied", ErrorCode::kNoPermission,
     "the credentials of AWS_ACCESS_KEY_ID do not allow it: datasets need read permission"},
    {403, "", ErrorCode::kNoPermission, "AWS_ACCESS_KEY_ID are wrong, or do not allow it"},
    {401, "", ErrorCode::kNoPermission, "AWS_ACCESS_KEY_ID are wrong, or do not allow it"},
    {301, "PermanentRedirect", ErrorCode::kConfig, "set AWS_REGION or AWS_ENDPOINT_URL"},
    {307, "TemporaryRedirect", ErrorCode::kConfig, "set AWS_REGION or AWS_ENDPOINT_URL"},
    {400, "InvalidBucketName", ErrorCode::kConfig, "choose another name"},
    {400, "KeyTooLongError", ErrorCode::kConfig, "choose another name"},
    {400, "InvalidURI", ErrorCode::kConfig, "choose another name"},
    {501, "NotImplemented", ErrorCode::kConfig, "use another one"},
    {501, "", ErrorCode::kConfig, "use another one"},
    {507, "", ErrorCode::kIo, "make room in the store"},
    {403, "QuotaExceeded", ErrorCode::kIo, "make room in the store"},
    {405, "MethodNotAllowed", ErrorCode::kIo, "look at the store's log"},
    {400, "EntityTooSmall", ErrorCode::kIo, "look at the store's log"},
    {418, "", ErrorCode::kIo, "look at the store's log"},
};

const Refused kRefused = {.method = "PUT",
                          .location = {.bucket = "bucket", .key = "a"},
                          .credentials_origin = "AWS_ACCESS_KEY_ID",
                          .now_unix_seconds = 1.8e9};

Settings SettingsFor(const std::string& region) {
  Settings settings;
  settings.endpoint = "http://store:9000";
  settings.region = region;
  return settings;
}

HttpAnswer AnswerOf(int status, const std::string& code, const std::string& more = "") {
  return {.status = status,
          .body = code.empty() ? "<html>No</html>"
                               : fmt::format("<Error><Code>{}</Code><Message>In the store's "
                                             "words\x1b[2J.</Message>{}</Error>",
                                             code, more)};
}

TEST(S3Explain, EachCode) {
  for (const Case& test : kCases) {
    SCOPED_TRACE(fmt::format("{} {}", test.status, test.code));
    const Error error =
        Explain(kRefused, AnswerOf(test.status, test.code), SettingsFor("us-east-1"));
    EXPECT_EQ(error.code(), test.expected) << error.what();
    EXPECT_THAT(error.what(), AllOf(StartsWith("PUT s3://bucket/a at http://store:9000: "),
                                    HasSubstr(test.what_to_do), Not(HasSubstr("\x1b"))));
    if (test.code.empty())
      EXPECT_THAT(error.what(), HasSubstr(fmt::format("HTTP status {}", test.status)));
    else
      EXPECT_THAT(error.what(), HasSubstr(test.code + ": In the store's words"));
    EXPECT_EQ(error.is_missing_file(),
              test.expected == ErrorCode::kNoInput && test.code != "NoSuchBucket");
  }
}

TEST(S3Explain, WhatIsNotThereMayBeCalledForbidden) {
  Refused get = kRefused;
  get.method = "GET";
  const auto said = [&](int status) {
    return std::string(
        Explain(get, AnswerOf(status, "AccessDenied"), SettingsFor("us-east-1")).what());
  };
  EXPECT_THAT(said(403), HasSubstr("do not allow it, or it is not there (who may not list"));
  EXPECT_THAT(said(401), HasSubstr("do not allow it: "));
  get.location.key = "";  // a list request
  EXPECT_THAT(said(403), HasSubstr("do not allow it: "));
}

TEST(S3Explain, TheStoresClock) {
  HttpAnswer answer =
      AnswerOf(403, "RequestTimeTooSkewed", "<ServerTime>2027-01-15T09:00:00Z</ServerTime>");
  EXPECT_THAT(Explain(kRefused, answer, SettingsFor("us-east-1")).what(),
              HasSubstr("this machine's clock says 2027-01-15T08:00:00Z, the store's "
                        "2027-01-15T09:00:00Z: "));
  answer = AnswerOf(403, "RequestTimeTooSkewed");
  answer.headers["date"] = "Fri, 15 Jan 2027 10:00:00 GMT";
  EXPECT_THAT(Explain(kRefused, answer, SettingsFor("us-east-1")).what(),
              HasSubstr("the store's Fri, 15 Jan 2027 10:00:00 GMT: "));
}

TEST(S3Explain, TheStoresClockWhereAnAnswerHasNoBody) {
  for (const auto& [date, expected] : std::vector<std::pair<std::string, ErrorCode>>{
           {"Fri, 15 Jan 2027 07:54:59 GMT", ErrorCode::kConfig},
           {"Fri, 15 Jan 2027 08:05:01 GMT", ErrorCode::kConfig},
           {"Fri, 15 Jan 2027 07:55:01 GMT", ErrorCode::kNoPermission},
           {"Fri, 15 Jan 2027 08:04:59 GMT", ErrorCode::kNoPermission},
           {"yesterday", ErrorCode::kNoPermission}}) {
    SCOPED_TRACE(date);
    const HttpAnswer answer = {.status = 403, .headers = {{"date", date}}};
    const Error error = Explain(kRefused, answer, SettingsFor("us-east-1"));
    EXPECT_EQ(error.code(), expected);
    EXPECT_THAT(error.what(),
                HasSubstr(expected == ErrorCode::kConfig ? "the store's " + date + ": correct it"
                                                         : "the credentials of AWS_ACCESS_KEY_ID"));
  }
  // If the store gives a reason, it is believed.
  HttpAnswer answer = AnswerOf(403, "SignatureDoesNotMatch");
  answer.headers["date"] = "Fri, 15 Jan 2027 10:00:00 GMT";
  EXPECT_EQ(Explain(kRefused, answer, SettingsFor("us-east-1")).code(), ErrorCode::kNoPermission);
}

TEST(S3Explain, AnotherRegion) {
  HttpAnswer answer = AnswerOf(400, "AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>");
  const Error error = Explain(kRefused, answer, SettingsFor("us-east-1"));
  EXPECT_EQ(error.code(), ErrorCode::kConfig);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("the region eu-west-1"), HasSubstr("say us-east-1"),
                                  HasSubstr("set AWS_REGION=eu-west-1")));
  // An answer to HEAD has only the header.
  answer = {.status = 301, .headers = {{"x-amz-bucket-region", "eu-west-1"}}};
  EXPECT_THAT(Explain(kRefused, answer, SettingsFor("us-east-1")).what(),
              HasSubstr("set AWS_REGION=eu-west-1"));
  EXPECT_THAT(Explain(kRefused, answer, SettingsFor("eu-west-1")).what(),
              Not(HasSubstr("AWS_REGION=")));
}

TEST(S3Explain, WhatIsTriedAgain) {
  for (const int status : {408, 429, 500, 502, 503, 504}) EXPECT_TRUE(IsTransient(status, ""));
  for (const int status : {301, 400, 401, 403, 404, 405, 412, 501, 507})
    EXPECT_FALSE(IsTransient(status, "")) << status;
  EXPECT_TRUE(IsTransient(400, "RequestTimeout"));
  EXPECT_TRUE(IsTransient(409, "ConditionalRequestConflict"));
  EXPECT_TRUE(IsTransient(200, "SlowDown"));
  EXPECT_FALSE(IsTransient(409, "BucketNotEmpty"));
}

// The same answers, to a client.
TEST(S3Explain, NoMessageHasASecret) {
  FakeStore store;
  Client client(ReadSettings(store.environment()), store.environment(), SystemClock(),
                {.retry_seconds = 0, .wait = [](double, const std::stop_token&) {}});
  std::vector<Fault> faults = {Fault::CutBefore(), Fault::CutAfter(), Fault::CutInHead(),
                               Fault::SlowDown()};
  for (const Case& test : kCases) faults.push_back(Fault::Answer(test.status, test.code));
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fmt::format("{} {} {}", static_cast<int>(fault.kind), fault.status, fault.code));
    store.FailNext(fault);
    try {
      client.Put({.bucket = FakeStore::kBucket, .key = "a"}, "1");
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(),
                  AllOf(HasSubstr("PUT s3://bucket/a"), HasSubstr(store.url()),
                        Not(HasSubstr(FakeStore::kSecretKey)),
                        Not(HasSubstr(FakeStore::kSessionToken)), Not(HasSubstr("AWS4-HMAC"))));
      for (const Case& test : kCases) {
        if (fault.status != test.status || fault.code != test.code) continue;
        EXPECT_EQ(error.code(), test.expected);
      }
    }
  }
}

}  // namespace
}  // namespace renzan::s3
