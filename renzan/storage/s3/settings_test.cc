#include "renzan/storage/s3/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "renzan/base/error.h"
#include "renzan/base/unreadable_files_for_test.h"
#include "renzan/storage/s3/endpoint.h"
#include "renzan/storage/s3/environment_for_test.h"

namespace renzan::s3 {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class S3SettingsTest : public testing::Test {
 protected:
  Settings Read() { return ReadSettings(environment_.Get()); }
  // The message of the kConfig Error that reading the settings throws.
  std::string Failure() {
    try {
      Read();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }
  std::string& Variable(const std::string& name) { return environment_.variables[name]; }

  TestEnvironment environment_;
};

TEST_F(S3SettingsTest, WithoutAnyTheyAreAwss) {
  const Settings settings = Read();
  EXPECT_EQ(settings.endpoint, "https://s3.us-east-1.amazonaws.com");
  EXPECT_TRUE(settings.is_aws);
  EXPECT_EQ(settings.region, "us-east-1");
  EXPECT_EQ(settings.addressing, Settings::Addressing::kAuto);
  EXPECT_EQ(settings.ca_bundle, "");
  EXPECT_EQ(settings.profile, "default");
  environment_.variables.clear();  // HOME too
  EXPECT_EQ(Read().region, "us-east-1");
}

TEST_F(S3SettingsTest, TheEndpointsPrecedence) {
  environment_.Write(".aws/config", "[default]\nendpoint_url = http://file:1\n");
  EXPECT_EQ(Read().endpoint, "http://file:1");
  Variable("AWS_ENDPOINT_URL") = "http://all:2";
  EXPECT_EQ(Read().endpoint, "http://all:2");
  Variable("AWS_ENDPOINT_URL_S3") = "http://s3:3";
  EXPECT_EQ(Read().endpoint, "http://s3:3");
  EXPECT_FALSE(Read().is_aws);
}

TEST_F(S3SettingsTest, TheRegionsPrecedence) {
  environment_.Write(".aws/credentials", "[default]\nregion = in-credentials\n");
  EXPECT_EQ(Read().region, "in-credentials");
  environment_.Write(".aws/config", "[default]\nregion = in-config\n");
  EXPECT_EQ(Read().region, "in-config");
  Variable("AWS_DEFAULT_REGION") = "eu-west-1";
  EXPECT_EQ(Read().region, "eu-west-1");
  Variable("AWS_REGION") = "eu-west-2";
  EXPECT_EQ(Read().region, "eu-west-2");
  EXPECT_EQ(Read().endpoint, "https://s3.eu-west-2.amazonaws.com");
  Variable("AWS_REGION") = "cn-north-1";
  EXPECT_EQ(Read().endpoint, "https://s3.cn-north-1.amazonaws.com.cn");
}

TEST_F(S3SettingsTest, ARegionThatIsNone) {
  Variable("AWS_REGION") = "evil.host/";
  EXPECT_THAT(Failure(), StartsWith("AWS_REGION: 'evil.host/' cannot be a region"));
  Variable("AWS_REGION") = "a\nb";
  EXPECT_THAT(Failure(), HasSubstr("'a\\nb'"));
  environment_.variables.erase("AWS_REGION");
  const std::string path = environment_.Write(".aws/config", "[default]\n\nregion = a_b\n");
  EXPECT_THAT(Failure(), StartsWith(path + ":3: region: 'a_b'"));
}

TEST_F(S3SettingsTest, Addressing) {
  Variable("RENZAN_S3_ADDRESSING") = "path";
  EXPECT_EQ(Read().addressing, Settings::Addressing::kPath);
  Variable("RENZAN_S3_ADDRESSING") = "virtual";
  EXPECT_EQ(Read().addressing, Settings::Addressing::kVirtual);
  Variable("RENZAN_S3_ADDRESSING") = "auto";
  EXPECT_EQ(Read().addressing, Settings::Addressing::kAuto);
  Variable("RENZAN_S3_ADDRESSING") = "Path";
  EXPECT_THAT(Failure(), AllOf(StartsWith("RENZAN_S3_ADDRESSING: 'Path'"),
                               HasSubstr("auto, path or virtual")));
}

TEST_F(S3SettingsTest, TheCaBundle) {
  Variable("AWS_CA_BUNDLE") = "/etc/ca.pem";
  EXPECT_EQ(Read().ca_bundle, "/etc/ca.pem");
}

TEST_F(S3SettingsTest, TheProfileThatIsNamed) {
  environment_.Write(".aws/config",
                     "[default]\nregion = r0\n[profile a]\nregion = r1\n[profile b]\n");
  environment_.Write(".aws/credentials", "[only-here]\naws_access_key_id = x\n");
  Variable("AWS_PROFILE") = "a";
  EXPECT_EQ(Read().region, "r1");
  EXPECT_EQ(Read().profile, "a");
  Variable("AWS_PROFILE") = "b";
  EXPECT_EQ(Read().region, "us-east-1") << "nothing of [default]";
  Variable("AWS_PROFILE") = "only-here";
  EXPECT_EQ(Read().profile, "only-here");
}

TEST_F(S3SettingsTest, AProfileInNeitherFile) {
  const std::string path = environment_.Write(".aws/config", "[c]\nregion = r\n");
  Variable("AWS_PROFILE") = "c";
  EXPECT_THAT(Failure(), AllOf(StartsWith("AWS_PROFILE: there is no profile 'c'"),
                               HasSubstr("[profile c] in " + path + " and"),
                               HasSubstr("/.aws/credentials (does not exist)")));
}

TEST_F(S3SettingsTest, FilesElsewhere) {
  Variable("AWS_CONFIG_FILE") = environment_.Write("elsewhere", "[default]\nregion = r1\n");
  Variable("AWS_SHARED_CREDENTIALS_FILE") = environment_.Write("keys", "[p]\n");
  environment_.Write(".aws/config", "[default]\nregion = r2\n");
  EXPECT_EQ(Read().region, "r1");
  Variable("AWS_CONFIG_FILE") = "~/elsewhere";
  EXPECT_EQ(Read().region, "r1");
  Variable("AWS_PROFILE") = "p";
  EXPECT_EQ(Read().profile, "p");
}

TEST_F(S3SettingsTest, FilesThatMayNotBeRead) {
  UnreadableFiles files;
  const ScopedFileSystem scope(files);
  files.Break("config", UnreadableFiles::Call::kOpen, EACCES);
  environment_.Write(".aws/config", "[default]\nregion = r\n");
  EXPECT_EQ(Read().region, "us-east-1") << "HOME may be another user's";
  Variable("AWS_PROFILE") = "x";
  EXPECT_THAT(Failure(), HasSubstr("/.aws/config (may not be read)"));
  environment_.variables.erase("AWS_PROFILE");

  files.Break("config", UnreadableFiles::Call::kRead, EIO);
  EXPECT_THROW(Read(), Error) << "it may say something else than the default";
  files.Break("config", UnreadableFiles::Call::kOpen, EACCES);
  Variable("AWS_CONFIG_FILE") = environment_.home / ".aws/config";
  try {
    Read();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNoInput);
    EXPECT_THAT(error.what(),
                StartsWith("AWS_CONFIG_FILE: cannot read " + environment_.home.path()));
  }
}

TEST(S3Settings, PathStyle) {
  const auto is_path = [](const std::string& endpoint, bool is_aws, Settings::Addressing addressing,
                          const std::string& bucket) {
    const Settings settings{.endpoint = endpoint,
                            .is_aws = is_aws,
                            .region = "",
                            .addressing = addressing,
                            .ca_bundle = "",
                            .profile = ""};
    return settings.UsesPathStyle(bucket);
  };
  using enum Settings::Addressing;
  EXPECT_FALSE(is_path("https://aws", true, kAuto, "data-1"));
  EXPECT_TRUE(is_path("https://own", false, kAuto, "data-1"));
  EXPECT_TRUE(is_path("https://aws", true, kPath, "data-1"));
  EXPECT_FALSE(is_path("https://own", false, kVirtual, "data-1"));
  EXPECT_TRUE(is_path("https://aws", true, kAuto, "data.one")) << "no certificate fits";
  EXPECT_TRUE(is_path("https://own", false, kVirtual, "data.one"));
  EXPECT_FALSE(is_path("http://own", false, kVirtual, "data.one"));
  EXPECT_TRUE(is_path("https://aws", true, kAuto, "Data"));
  EXPECT_TRUE(is_path("https://aws", true, kAuto, "data_1"));
}

TEST(S3Endpoint, Valid) {
  EXPECT_EQ(CheckedEndpoint("http://localhost:9000", "X"), "http://localhost:9000");
  EXPECT_EQ(CheckedEndpoint("https://s3.my-company.example/", "X"),
            "https://s3.my-company.example");
  EXPECT_EQ(CheckedEndpoint("http://[::1]:8333/", "X"), "http://[::1]:8333");
  EXPECT_EQ(CheckedEndpoint("http://[fd00:ec2::254]", "X"), "http://[fd00:ec2::254]");
  EXPECT_EQ(CheckedEndpoint("http://a:80", "X"), "http://a") << "as in the Host header";
  EXPECT_EQ(CheckedEndpoint("https://a:443/", "X"), "https://a");
  EXPECT_EQ(CheckedEndpoint("https://a:80", "X"), "https://a:80");
}

TEST(S3Endpoint, Invalid) {
  for (const std::string value :
       {"localhost:9000", "ftp://a",      "HTTPS://a",     "http:/a",     "http://",
        "http:///",       "http://:9000", "http://a:",     "http://a:0",  "http://a:65536",
        "http://a:9x",    "http://a:-1",  "http://a/path", "http://a//",  "http://a?x=1",
        "http://a#b",     "http://a b",   "http://a\nb",   "http://[::1", "http://[]",
        "http://a:1:2",   "http://a%20b"}) {
    SCOPED_TRACE(value);
    try {
      CheckedEndpoint(value, "AWS_ENDPOINT_URL");
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);
      EXPECT_THAT(error.what(), AllOf(StartsWith("AWS_ENDPOINT_URL: '"),
                                      HasSubstr("write http://HOST:PORT or https://HOST")));
    }
  }
}

TEST(S3Endpoint, APathIsNamedAsTheReason) {
  EXPECT_THAT([] { CheckedEndpoint("http://host/bucket", "X"); },
              testing::ThrowsMessage<Error>(HasSubstr("'http://host/bucket' has a path")));
}

TEST(S3Endpoint, APasswordInItIsNotDisplayed) {
  try {
    CheckedEndpoint("http://ann:hunter2@host", "AWS_ENDPOINT_URL");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), StartsWith("AWS_ENDPOINT_URL: "));
    EXPECT_THAT(error.what(), testing::Not(HasSubstr("hunter2")));
  }
}

}  // namespace
}  // namespace renzan::s3
