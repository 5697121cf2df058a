#include "renzan/storage/s3/instance_metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "renzan/base/error.h"
#include "renzan/storage/s3/environment_for_test.h"
#include "renzan/storage/s3/fake_http_sender_for_test.h"

namespace renzan::s3 {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

constexpr const char* kToken = "PUT http://169.254.169.254/latest/api/token";
const std::string kRoles = "GET http://169.254.169.254/latest/meta-data/iam/security-credentials/";
// As in AWS's documentation; secrets begin with "hush".
constexpr const char* kAnswer = R"({
  "Code" : "Success",
  "LastUpdated" : "2026-10-24T16:39:16Z",
  "Type" : "AWS-HMAC",
  "AccessKeyId" : "ASIA1",
  "SecretAccessKey" : "hush-secret",
  "Token" : "hush-session",
  "Expiration" : "2026-10-24T23:00:23Z"
})";

class InstanceMetadataTest : public testing::Test {
 protected:
  InstanceMetadataTest() {
    environment_.variables["RENZAN_S3_INSTANCE_METADATA"] = "1";
    answers_ = {{kToken, {.status = 200, .body = "hush-token"}},
                {kRoles, {.status = 200, .body = "my-role\n"}},
                {kRoles + "my-role", {.status = 200, .body = kAnswer}}};
    http_.answer = [this](const HttpRequest& request) {
      const auto found = answers_.find(request.method + " " + request.url);
      return found == answers_.end() ? HttpAnswer{.status = 404} : found->second;
    };
  }

  std::optional<TemporaryCredentials> Get() {
    return CredentialsOfInstance(environment_.Get(), http_);
  }

  void ExpectFailure(ErrorCode code, const testing::Matcher<std::string>& message) {
    try {
      Get();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_THAT(std::string(error.what()), AllOf(message, Not(HasSubstr("hush"))));
    }
  }

  TestEnvironment environment_;
  FakeHttpSender http_;
  std::map<std::string, HttpAnswer> answers_;  // of "METHOD URL"
};

TEST_F(InstanceMetadataTest, AsksWithATokenForTheRolesCredentials) {
  const auto found = Get();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->credentials, (Credentials{.access_key_id = "ASIA1",
                                             .secret_access_key = "hush-secret",
                                             .session_token = "hush-session"}));
  EXPECT_EQ(found->expires_unix_seconds, 1792882823);
  const std::vector<HttpRequest> requests = http_.requests();
  ASSERT_EQ(requests.size(), 3);
  EXPECT_THAT(requests[0].headers,
              ElementsAre(Pair("X-aws-ec2-metadata-token-ttl-seconds", "21600")));
  EXPECT_THAT(requests[1].headers, ElementsAre(Pair("X-aws-ec2-metadata-token", "hush-token")));
  EXPECT_THAT(requests[2].headers, ElementsAre(Pair("X-aws-ec2-metadata-token", "hush-token")));
  for (const HttpRequest& request : requests) EXPECT_EQ(request.timeout_seconds, 2);
}

TEST_F(InstanceMetadataTest, OnlyIfAskedFor) {
  environment_.variables["RENZAN_S3_INSTANCE_METADATA"] = "0";
  EXPECT_FALSE(Get());
  environment_.variables.erase("RENZAN_S3_INSTANCE_METADATA");
  EXPECT_FALSE(Get());
  EXPECT_TRUE(http_.requests().empty());
  environment_.variables["RENZAN_S3_INSTANCE_METADATA"] = "yes";
  ExpectFailure(ErrorCode::kConfig,
                StartsWith("RENZAN_S3_INSTANCE_METADATA: 'yes' is neither 0 nor 1"));
}

TEST_F(InstanceMetadataTest, AnotherAddress) {
  environment_.variables["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = "http://[fd00:ec2::254]/";
  ExpectFailure(ErrorCode::kNoPermission, HasSubstr("at http://[fd00:ec2::254] gave no"));
  EXPECT_EQ(http_.requests()[0].url, "http://[fd00:ec2::254]/latest/api/token");
  environment_.variables["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = "fd00:ec2::254";
  ExpectFailure(ErrorCode::kConfig, StartsWith("AWS_EC2_METADATA_SERVICE_ENDPOINT: "));
}

TEST_F(InstanceMetadataTest, Unreachable) {
  http_.answer = nullptr;
  ExpectFailure(ErrorCode::kUnavailable,
                AllOf(StartsWith("the instance's metadata service at http://169.254.169.254 does "
                                 "not answer: nobody there"),
                      HasSubstr("unset RENZAN_S3_INSTANCE_METADATA"), HasSubstr("hop limit")));
}

TEST_F(InstanceMetadataTest, NoToken) {
  answers_[kToken] = {.status = 403};
  ExpectFailure(ErrorCode::kNoPermission, HasSubstr("(status 403, asked for a token)"));
  answers_[kToken] = {.status = 503};
  ExpectFailure(ErrorCode::kUnavailable, HasSubstr("(status 503, asked for a token)"));
  answers_[kToken] = {.status = 200, .body = "hush\r\nX-Header: 1"};
  ExpectFailure(ErrorCode::kNoPermission, HasSubstr("(status 200, asked for a token)"));
}

TEST_F(InstanceMetadataTest, NoRole) {
  answers_[kRoles] = {.status = 404, .body = "Not Found"};
  ExpectFailure(ErrorCode::kConfig,
                AllOf(StartsWith("this instance has no role"), HasSubstr("attach one")));
  answers_[kRoles] = {.status = 200, .body = "\n"};
  ExpectFailure(ErrorCode::kConfig, StartsWith("this instance has no role"));
  answers_[kRoles] = {.status = 500};
  ExpectFailure(ErrorCode::kUnavailable, HasSubstr("(status 500, asked for the role)"));
  answers_[kRoles] = {.status = 200, .body = "../../x?\n"};
  ExpectFailure(ErrorCode::kIo, HasSubstr("role '../../x?', which cannot be one"));
}

TEST_F(InstanceMetadataTest, NoCredentials) {
  HttpAnswer& answer = answers_[kRoles + "my-role"];
  answer = {.status = 404};
  ExpectFailure(ErrorCode::kNoPermission, HasSubstr("the credentials of role my-role)"));
  answer = {.status = 200, .body = R"({"Code": "AssumeRoleUnauthorizedAccess"})"};
  ExpectFailure(ErrorCode::kNoPermission, HasSubstr("answers AssumeRoleUnauthorizedAccess"));
  answer = {.status = 200, .body = "<hush>"};
  ExpectFailure(ErrorCode::kIo, HasSubstr("JSON object"));
  answer = {.status = 200, .body = "[\"hush\"]"};
  ExpectFailure(ErrorCode::kIo, HasSubstr("JSON object"));
  answer = {.status = 200,
            .body = R"({"AccessKeyId": "A", "SecretAccessKey": 7, "Token": "hush"})"};
  ExpectFailure(ErrorCode::kIo, HasSubstr("no valid secret access key"));
  answer = {.status = 200,
            .body = R"({"AccessKeyId": "A", "SecretAccessKey": "hush", "Token": "hush"})"};
  ExpectFailure(ErrorCode::kIo, HasSubstr("expiration '' is no time"));
}

}  // namespace
}  // namespace renzan::s3
