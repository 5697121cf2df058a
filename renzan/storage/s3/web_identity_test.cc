#include "renzan/storage/s3/web_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/error.h"
#include "renzan/storage/s3/environment_for_test.h"
#include "renzan/storage/s3/fake_http_sender_for_test.h"

namespace renzan::s3 {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// As in AWS's documentation; secrets begin with "hush".
constexpr const char* kStsAnswer = R"(<?xml version="1.0"?>
<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <AssumeRoleWithWebIdentityResult>
    <SubjectFromWebIdentityToken>amzn1</SubjectFromWebIdentityToken>
    <Credentials>
      <SessionToken>hush-session</SessionToken>
      <SecretAccessKey>hush-secret</SecretAccessKey>
      <Expiration>2026-10-24T23:00:23.5Z</Expiration>
      <AccessKeyId>ASIA1</AccessKeyId>
    </Credentials>
  </AssumeRoleWithWebIdentityResult>
</AssumeRoleWithWebIdentityResponse>)";

class WebIdentityTest : public testing::Test {
 protected:
  WebIdentityTest() {
    environment_.variables["AWS_WEB_IDENTITY_TOKEN_FILE"] =
        environment_.Write("token", "hush+token==\n");
    environment_.variables["AWS_ROLE_ARN"] = "arn:aws:iam::1:role/r";
    Answer(200, kStsAnswer);
  }

  void Answer(int status, const std::string& body) {
    http_.answer = [=](const HttpRequest&) { return HttpAnswer{.status = status, .body = body}; };
  }

  std::optional<TemporaryCredentials> Get(const std::string& region = "eu-west-1") {
    return CredentialsOfWebIdentity(environment_.Get(), region, http_);
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
};

TEST_F(WebIdentityTest, ExchangesTheTokenForCredentials) {
  const auto found = Get();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->credentials, (Credentials{.access_key_id = "ASIA1",
                                             .secret_access_key = "hush-secret",
                                             .session_token = "hush-session"}));
  EXPECT_EQ(found->expires_unix_seconds, 1792882823.5);
  ASSERT_EQ(http_.requests().size(), 1);
  const HttpRequest request = http_.requests()[0];
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.url,
            "https://sts.eu-west-1.amazonaws.com/?Action=AssumeRoleWithWebIdentity"
            "&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&RoleSessionName=renzan"
            "&WebIdentityToken=hush%2Btoken%3D%3D");
  EXPECT_TRUE(request.headers.empty()) << "it is not signed";
}

TEST_F(WebIdentityTest, WhereItAsksAndAsWhom) {
  Get("cn-north-1");
  EXPECT_THAT(http_.requests()[0].url, StartsWith("https://sts.cn-north-1.amazonaws.com.cn/?"));
  environment_.variables["AWS_ENDPOINT_URL_STS"] = "http://own:9000/";
  environment_.variables["AWS_ROLE_SESSION_NAME"] = "a@b";
  Get();
  EXPECT_THAT(http_.requests()[1].url,
              AllOf(StartsWith("http://own:9000/?"), HasSubstr("&RoleSessionName=a%40b&")));
}

TEST_F(WebIdentityTest, OnlyWithATokenFile) {
  environment_.variables.erase("AWS_WEB_IDENTITY_TOKEN_FILE");
  EXPECT_FALSE(Get()) << "AWS_ROLE_ARN has other uses";
  EXPECT_TRUE(http_.requests().empty());
}

TEST_F(WebIdentityTest, WrongVariables) {
  environment_.variables["AWS_ENDPOINT_URL_STS"] = "own:9000";
  ExpectFailure(ErrorCode::kConfig, StartsWith("AWS_ENDPOINT_URL_STS: 'own:9000'"));
  environment_.variables.erase("AWS_ROLE_ARN");
  ExpectFailure(ErrorCode::kConfig, HasSubstr("AWS_ROLE_ARN is not"));
  EXPECT_TRUE(http_.requests().empty());
}

TEST_F(WebIdentityTest, WrongTokenFiles) {
  const std::string path = environment_.variables["AWS_WEB_IDENTITY_TOKEN_FILE"];
  for (const std::string text : {"", "\n", "hush token", "hush\ntoken", "hush\x01token"}) {
    SCOPED_TRACE(text);
    environment_.Write("token", text);
    ExpectFailure(ErrorCode::kConfig,
                  StartsWith("AWS_WEB_IDENTITY_TOKEN_FILE: " + path + " does not hold a token"));
  }
  environment_.variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = path + "-lost";
  ExpectFailure(ErrorCode::kNoInput,
                StartsWith("AWS_WEB_IDENTITY_TOKEN_FILE: cannot read " + path + "-lost: No such"));
  EXPECT_TRUE(http_.requests().empty());
}

TEST_F(WebIdentityTest, Refused) {
  Answer(400,
         "<ErrorResponse><Error><Type>Sender</Type><Code>InvalidIdentityToken</Code>"
         "<Message>the token hush+token== is\nno good</Message></Error></ErrorResponse>");
  ExpectFailure(ErrorCode::kNoPermission,
                AllOf(StartsWith("https://sts.eu-west-1.amazonaws.com, asked for the credentials "
                                 "of AWS_ROLE_ARN, gave no credentials (status 400, "
                                 "InvalidIdentityToken: the token ... is\\nno good)"),
                      HasSubstr("trust policy")));
  Answer(403, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>");
  ExpectFailure(ErrorCode::kNoPermission, HasSubstr("(status 403, AccessDenied: no)"));
  Answer(401, "hush? no XML");
  ExpectFailure(ErrorCode::kNoPermission, HasSubstr("(status 401)"));
  Answer(503, "");
  ExpectFailure(ErrorCode::kUnavailable, HasSubstr("(status 503)"));
  Answer(429, "");
  ExpectFailure(ErrorCode::kUnavailable, HasSubstr("(status 429)"));
}

TEST_F(WebIdentityTest, ATokenThatIsPartOfItsReplacement) {
  environment_.Write("token", ".");
  Answer(400, "<Error><Code>C</Code><Message>a.b.</Message></Error>");
  ExpectFailure(ErrorCode::kNoPermission, HasSubstr("C: a...b...)"));
}

TEST_F(WebIdentityTest, Unreachable) {
  http_.answer = nullptr;
  ExpectFailure(ErrorCode::kUnavailable,
                AllOf(StartsWith("https://sts.eu-west-1.amazonaws.com, "),
                      HasSubstr("does not answer: nobody there: check AWS_ENDPOINT_URL_STS")));
}

TEST_F(WebIdentityTest, AnswersThatAreNone) {
  Answer(200, "<html>hush</html>");
  ExpectFailure(ErrorCode::kIo, HasSubstr("not as STS does"));
  const auto replaced = [](const std::string& from, const std::string& to) {
    std::string body = kStsAnswer;
    return body.replace(body.find(from), from.size(), to);
  };
  Answer(200, replaced("hush-secret", ""));
  ExpectFailure(ErrorCode::kIo, HasSubstr("no valid secret access key"));
  Answer(200, replaced("hush-session", "hush session"));
  ExpectFailure(ErrorCode::kIo, HasSubstr("no valid session token"));
  Answer(200, replaced("ASIA1", "A\nhush: x"));
  ExpectFailure(ErrorCode::kIo, HasSubstr("no valid access key id"));
  Answer(200, replaced("23.5Z", "23.5"));
  ExpectFailure(ErrorCode::kIo, HasSubstr("expiration '2026-10-24T23:00:23.5'"));
}

}  // namespace
}  // namespace renzan::s3
