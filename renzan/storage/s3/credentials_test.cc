#include "renzan/storage/s3/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "renzan/base/clock_testing.h"
#include "renzan/base/error.h"
#include "renzan/storage/s3/environment_for_test.h"
#include "renzan/storage/s3/fake_http_sender_for_test.h"

namespace renzan::s3 {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Secrets begin with "hush": no message may contain one.
class CredentialsTest : public testing::Test {
 protected:
  CredentialSource Source() {
    return CredentialSource(ReadSettings(environment_.Get()), environment_.Get(), http_, clock_);
  }
  Credentials Get() { return Source().Get(); }

  void ExpectFailure(ErrorCode code, const testing::Matcher<std::string>& message) {
    try {
      Get();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_THAT(std::string(error.what()), AllOf(message, Not(HasSubstr("hush"))));
    }
  }

  std::string& Variable(const std::string& name) { return environment_.variables[name]; }

  void SetKeys() {
    Variable("AWS_ACCESS_KEY_ID") = "ENV";
    Variable("AWS_SECRET_ACCESS_KEY") = "hush-env";
  }

  // STS issues ID1, ID2 ..., each valid for an hour.
  void SetWebIdentity() {
    Variable("AWS_WEB_IDENTITY_TOKEN_FILE") = environment_.Write("token", "hush-token");
    Variable("AWS_ROLE_ARN") = "arn:r";
    http_.answer = [this](const HttpRequest&) {
      return HttpAnswer{
          .status = 200,
          .body = fmt::format(
              "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"
              "<AccessKeyId>ID{}</AccessKeyId><SecretAccessKey>hush</SecretAccessKey>"
              "<SessionToken>hush</SessionToken><Expiration>{}</Expiration></Credentials>"
              "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>",
              ++given_, FormatUtc(clock_.UnixSeconds() + 3600))};
    };
  }

  TestEnvironment environment_;
  FakeHttpSender http_;
  ManualClock clock_;
  std::atomic<int> given_ = 0;
};

TEST_F(CredentialsTest, FromVariables) {
  SetKeys();
  CredentialSource source = Source();
  EXPECT_EQ(source.origin(), "");
  EXPECT_EQ(
      source.Get(),
      (Credentials{.access_key_id = "ENV", .secret_access_key = "hush-env", .session_token = ""}));
  EXPECT_EQ(source.origin(), "AWS_ACCESS_KEY_ID");
  Variable("AWS_SESSION_TOKEN") = "hush-token";
  EXPECT_EQ(Get().session_token, "hush-token");
}

TEST_F(CredentialsTest, IncompleteVariables) {
  Variable("AWS_ACCESS_KEY_ID") = "hush-id";
  ExpectFailure(ErrorCode::kConfig,
                StartsWith("AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not"));
  environment_.variables.erase("AWS_ACCESS_KEY_ID");
  Variable("AWS_SECRET_ACCESS_KEY") = "hush-secret";
  ExpectFailure(ErrorCode::kConfig,
                StartsWith("AWS_SECRET_ACCESS_KEY is set, but AWS_ACCESS_KEY_ID is not"));
}

TEST_F(CredentialsTest, VariablesWithOddCharacters) {
  for (const std::string name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"})
    for (const std::string value : {"hush\n", " hush", "hu sh", "hush\r\nX: y", "hush\x7f", "ü"}) {
      SCOPED_TRACE(name + "=" + value);
      SetKeys();
      Variable(name) = value;
      ExpectFailure(ErrorCode::kConfig, AllOf(StartsWith(name + ": the value has a space"),
                                              Not(HasSubstr("hu")), Not(HasSubstr("ü"))));
    }
}

TEST_F(CredentialsTest, FromFiles) {
  environment_.Write(".aws/config",
                     "[default]\naws_access_key_id = C\naws_secret_access_key = hush-c\n"
                     "[profile b]\naws_access_key_id = B\naws_secret_access_key = hush-b\n");
  EXPECT_EQ(Get().access_key_id, "C");
  const std::string path =
      environment_.Write(".aws/credentials",
                         "[default]\naws_access_key_id = A\naws_secret_access_key = hush-a\n"
                         "aws_session_token = hush-token\n"
                         "[b]\nregion = r\n");
  CredentialSource source = Source();
  EXPECT_EQ(source.Get(), (Credentials{.access_key_id = "A",
                                       .secret_access_key = "hush-a",
                                       .session_token = "hush-token"}));
  EXPECT_EQ(source.origin(), "profile 'default' of " + path);
  Variable("AWS_PROFILE") = "b";
  EXPECT_EQ(Get(), (Credentials{
                       .access_key_id = "B", .secret_access_key = "hush-b", .session_token = ""}));
}

TEST_F(CredentialsTest, WrongFiles) {
  const std::string path =
      environment_.Write(".aws/credentials", "[default]\nregion = r\naws_access_key_id = hush\n");
  ExpectFailure(ErrorCode::kConfig,
                StartsWith(path + ":3: profile 'default' has aws_access_key_id, but no "
                                  "aws_secret_access_key"));
  environment_.Write(".aws/credentials",
                     "[default]\naws_access_key_id =\naws_secret_access_key = hush\n");
  ExpectFailure(ErrorCode::kConfig,
                StartsWith(path + ":3: profile 'default' has aws_secret_access_key, but no "
                                  "aws_access_key_id"));
  environment_.Write(".aws/credentials",
                     "[default]\naws_access_key_id = A\naws_secret_access_key = hush hush\n");
  ExpectFailure(ErrorCode::kConfig, StartsWith(path + ":3: the value has a space"));
}

TEST_F(CredentialsTest, TheOrderOfPlaces) {
  const auto instance = [](const HttpRequest& request) {
    if (request.method == "PUT") return HttpAnswer{.status = 200, .body = "hush"};
    if (request.url.ends_with('/')) return HttpAnswer{.status = 200, .body = "role"};
    return HttpAnswer{.status = 200,
                      .body = R"({"AccessKeyId": "INSTANCE", "SecretAccessKey": "hush",
                                  "Token": "hush", "Expiration": "2030-01-01T00:00:00Z"})"};
  };
  Variable("RENZAN_S3_INSTANCE_METADATA") = "1";
  http_.answer = instance;
  CredentialSource source = Source();
  EXPECT_EQ(source.Get().access_key_id, "INSTANCE");
  EXPECT_EQ(source.origin(), "the instance's metadata service");
  environment_.Write(".aws/credentials",
                     "[default]\naws_access_key_id = FILE\naws_secret_access_key = hush\n");
  EXPECT_EQ(Get().access_key_id, "FILE");
  SetWebIdentity();
  EXPECT_EQ(Get().access_key_id, "ID1");
  SetKeys();
  const size_t requests = http_.requests().size();
  EXPECT_EQ(Get().access_key_id, "ENV");
  EXPECT_EQ(http_.requests().size(), requests) << "nobody else is asked";
}

TEST_F(CredentialsTest, None) {
  const std::string config = environment_.Write(
      ".aws/config", "[default]\nregion = r\ncredential_process = /bin/hush --secret\n");
  ExpectFailure(
      ErrorCode::kConfig,
      AllOf(StartsWith("no credentials for the object store: neither AWS_ACCESS_KEY_ID nor "
                       "AWS_WEB_IDENTITY_TOKEN_FILE is set; profile 'default' has no keys in " +
                       environment_.home.path() + "/.aws/credentials (does not exist) and " +
                       config + "; " + config + ":3: credential_process is not supported"),
            HasSubstr("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
            HasSubstr("RENZAN_S3_INSTANCE_METADATA=1")));
  EXPECT_TRUE(http_.requests().empty());
}

TEST_F(CredentialsTest, TemporaryOnesAreRenewedFiveMinutesBeforeTheyExpire) {
  SetWebIdentity();
  CredentialSource source = Source();
  EXPECT_EQ(source.Get().access_key_id, "ID1");
  clock_.seconds += 3600 - 301;
  EXPECT_EQ(source.Get().access_key_id, "ID1");
  clock_.seconds += 2;
  environment_.Write("token", "hush-token-2");
  EXPECT_EQ(source.Get().access_key_id, "ID2");
  EXPECT_EQ(source.Get().access_key_id, "ID2");
  EXPECT_THAT(http_.requests().back().url, HasSubstr("WebIdentityToken=hush-token-2"));
}

TEST_F(CredentialsTest, OldOnesAreUsedWhileTheyAreValidAndCannotBeRenewed) {
  SetWebIdentity();
  CredentialSource source = Source();
  source.Get();
  const auto sts = std::exchange(http_.answer, nullptr);
  clock_.seconds += 3600 - 200;
  testing::internal::CaptureStderr();
  EXPECT_EQ(source.Get().access_key_id, "ID1");
  EXPECT_EQ(source.Get().access_key_id, "ID1");
  EXPECT_EQ(http_.requests().size(), 2) << "not at each call";
  clock_.seconds += 31;
  EXPECT_EQ(source.Get().access_key_id, "ID1");
  EXPECT_EQ(http_.requests().size(), 3);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, AllOf(HasSubstr("cannot renew the credentials from AWS_WEB_IDENTITY_TOKEN_FILE"),
                         HasSubstr("nobody there"), Not(HasSubstr("hush"))));
  EXPECT_EQ(log.find("cannot renew"), log.rfind("cannot renew")) << "once";

  clock_.seconds += 170;  // expired
  EXPECT_THROW(source.Get(), Error);
  EXPECT_THROW(source.Get(), Error);
  http_.answer = sts;
  EXPECT_EQ(source.Get().access_key_id, "ID2") << "at once";

  http_.answer = nullptr;
  clock_.seconds += 3600 - 200;
  testing::internal::CaptureStderr();
  source.Get();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("cannot renew"))
      << "it is another failure";
}

TEST_F(CredentialsTest, NobodyWaitsForARenewalWhileTheOldOnesAreValid) {
  SetWebIdentity();
  CredentialSource source = Source();
  source.Get();
  clock_.seconds += 3600 - 200;
  std::promise<void> asked, may_answer;
  const auto sts = http_.answer;
  http_.answer = [&](const HttpRequest& request) {
    asked.set_value();
    may_answer.get_future().wait();
    return sts(request);
  };
  std::thread renewing([&] { EXPECT_EQ(source.Get().access_key_id, "ID2"); });
  asked.get_future().wait();
  EXPECT_EQ(source.Get().access_key_id, "ID1");
  may_answer.set_value();
  renewing.join();
  EXPECT_EQ(source.Get().access_key_id, "ID2");
}

TEST_F(CredentialsTest, ThreadsThatNeedThemAskOnce) {
  SetWebIdentity();
  CredentialSource source = Source();
  std::atomic<int> started = 0;
  const auto sts = http_.answer;
  http_.answer = [&](const HttpRequest& request) {
    while (started < 4) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // now all wait for this answer
    clock_.seconds += 60;
    return sts(request);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      ++started;
      EXPECT_EQ(source.Get().access_key_id, "ID1");
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(http_.requests().size(), 1);
}

TEST_F(CredentialsTest, ThreadsThatWaitForAFailureShareIt) {
  SetWebIdentity();
  CredentialSource source = Source();
  std::atomic<int> started = 0;
  http_.answer = [&](const HttpRequest&) -> HttpAnswer {
    while (started < 4) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // now they wait
    throw HttpFailure{.kind = HttpFailure::Kind::kBroken, .what = "no answer"};
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      ++started;
      EXPECT_THAT([&] { source.Get(); }, testing::ThrowsMessage<Error>(HasSubstr("no answer")));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(http_.requests().size(), 4) << "each waited for an answer of its own";
  EXPECT_THROW(source.Get(), Error);
  EXPECT_GT(http_.requests().size(), 1) << "later ones ask again";
}

TEST_F(CredentialsTest, RenewReadsFilesAgain) {
  const auto write = [this](const std::string& id) {
    environment_.Write(
        ".aws/credentials",
        fmt::format("[default]\naws_access_key_id = {}\naws_secret_access_key = hush\n", id));
  };
  write("A");
  CredentialSource source = Source();
  const Credentials first = source.Get();
  EXPECT_FALSE(source.Renew(first)) << "the same";
  write("B");
  EXPECT_EQ(source.Get().access_key_id, "A");
  EXPECT_TRUE(source.Renew(first));
  EXPECT_EQ(source.Get().access_key_id, "B");
  write("C");
  EXPECT_TRUE(source.Renew(first)) << "others are there already";
  EXPECT_EQ(source.Get().access_key_id, "B");
}

TEST_F(CredentialsTest, RenewAsksAgain) {
  SetWebIdentity();
  CredentialSource source = Source();
  const Credentials first = source.Get();
  EXPECT_TRUE(source.Renew(first));
  EXPECT_EQ(source.Get().access_key_id, "ID2");
  http_.answer = nullptr;
  EXPECT_THROW(source.Renew(source.Get()), Error);
}

}  // namespace
}  // namespace renzan::s3
