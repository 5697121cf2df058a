// What a program for credentials is told, and what becomes of what it says.

#include "renzan/cluster/kubernetes/api/exec_plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "renzan/base/clock_testing.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cluster/kubernetes/api/api.h"
#include "renzan/cluster/kubernetes/api/certificates_for_test.h"

namespace renzan::cluster::kubernetes {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kV1 = "client.authentication.k8s.io/v1";
constexpr const char* kV1Beta1 = "client.authentication.k8s.io/v1beta1";

class ExecPluginTest : public testing::Test {
 protected:
  // A program that runs these lines of a shell.
  void Write(const std::string& lines) {
    WriteFileAtomically(directory_ / "plugin", "#!/bin/sh\n" + lines + "\n");
    std::filesystem::permissions(directory_ / "plugin", std::filesystem::perms::owner_all);
  }
  void WriteAnswer(const Json& status, const char* version = kV1) {
    Write("cat <<'END'\n" +
          Json{{"apiVersion", version}, {"kind", "ExecCredential"}, {"status", status}}.dump() +
          "\nEND");
  }
  ExecAnswer Run() { return RunExecPlugin(config_, surroundings_, clock_, {}); }
  std::string ErrorOf(ErrorCode code) {
    try {
      Run();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_THAT(error.what(), HasSubstr("config: users.u.user.exec: "));
      EXPECT_THAT(error.what(), Not(HasSubstr("secret")));
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }

  TemporaryDirectory directory_;
  ManualClock clock_;
  const time_t now_ = static_cast<time_t>(clock_.UnixSeconds());
  ExecConfig config_{.where = "config: users.u.user.exec",
                     .argv = {directory_ / "plugin", "--secret"},
                     .api_version = kV1};
  ExecSurroundings surroundings_;
};

TEST_F(ExecPluginTest, AnswersWithAToken) {
  WriteAnswer({{"token", "t"}});
  EXPECT_EQ(Run().credential, (Credential{.token = "t"}));
  EXPECT_FALSE(Run().expires);
  for (const char* time :
       {"2026-01-31T12:34:56Z", "2026-01-31T14:34:56+02:00", "2026-01-31T07:04:56-05:30"}) {
    WriteAnswer({{"token", "t"}, {"expirationTimestamp", time}});
    EXPECT_EQ(Run().expires, ParseUtc("2026-01-31T12:34:56Z")) << time;
  }
  config_.api_version = kV1Beta1;
  WriteAnswer({{"token", "t"}, {"expirationTimestamp", nullptr}}, kV1Beta1);
  EXPECT_EQ(Run().credential.token, "t");
}

TEST_F(ExecPluginTest, AnswersWithACertificate) {
  const TestCertificate authority("authority", "", nullptr, now_ - kTestDay, now_ + kTestDay);
  const TestCertificate client("client", "", &authority, now_ - kTestDay, now_ + kTestDay);
  WriteAnswer({{"clientCertificateData", client.pem()}, {"clientKeyData", client.key_pem()}});
  EXPECT_EQ(Run().credential, (Credential{.client_certificate_pem = client.pem(),
                                          .client_key_pem = client.key_pem()}));
  WriteAnswer({{"clientCertificateData", client.pem()}});
  EXPECT_THAT(ErrorOf(ErrorCode::kConfig), HasSubstr("a certificate or a key, not with both"));
  WriteAnswer({{"clientCertificateData", client.pem()}, {"clientKeyData", authority.key_pem()}});
  EXPECT_THAT(ErrorOf(ErrorCode::kConfig), HasSubstr("clientKeyData: not the private key of"));
}

TEST_F(ExecPluginTest, GetsItsArgumentsAndEnvironment) {
  Write("printf '%s\\n' \"$@\" \"$PROFILE\" \"${HOME:-lost}\" > " + (directory_ / "seen") +
        "\nprintf %s \"$KUBERNETES_EXEC_INFO\" > " + (directory_ / "info") +
        "\necho '{\"apiVersion\": \"" + kV1 +
        "\", \"kind\": \"ExecCredential\", \"status\": {\"token\": \"t\"}}'");
  config_.argv.insert(config_.argv.end(), {"a b", "$HOME;"});
  config_.environment = {"PROFILE=first", "HOME=/theirs", "PROFILE=team x"};
  Run();
  EXPECT_EQ(ReadFile(directory_ / "seen"), "--secret\na b\n$HOME;\nteam x\n/theirs\n");
  EXPECT_EQ(
      Json::parse(ReadFile(directory_ / "info")),
      Json({{"apiVersion", kV1}, {"kind", "ExecCredential"}, {"spec", {{"interactive", false}}}}));
  config_.cluster = "{\"server\": \"https://h\"}";
  Run();
  EXPECT_EQ(Json::parse(ReadFile(directory_ / "info"))["spec"]["cluster"],
            Json({{"server", "https://h"}}));
}

TEST_F(ExecPluginTest, IsInteractiveWhereAPersonCanAnswer) {
  Write("printf %s \"$KUBERNETES_EXEC_INFO\" > " + (directory_ / "info") + "; exit 1");
  const auto interactive = [&](InteractiveMode mode, bool terminal) {
    config_.interactive = mode;
    surroundings_.terminal = terminal;
    EXPECT_THROW(Run(), Error);
    return Json::parse(ReadFile(directory_ / "info"))["spec"]["interactive"].get<bool>();
  };
  EXPECT_FALSE(interactive(InteractiveMode::kNever, true));
  EXPECT_FALSE(interactive(InteractiveMode::kIfAvailable, false));
  EXPECT_TRUE(interactive(InteractiveMode::kIfAvailable, true));
  EXPECT_TRUE(interactive(InteractiveMode::kAlways, true));
  surroundings_.terminal = false;
  EXPECT_THAT(ErrorOf(ErrorCode::kConfig),
              HasSubstr("interactiveMode is Always, and stdin is not"));
}

TEST_F(ExecPluginTest, AProgramThatDoesNotExistIsToBeInstalled) {
  config_.install_hint = "Get it from\nhttps://example.org\x1b";
  EXPECT_THAT(ErrorOf(ErrorCode::kConfig),
              AllOf(HasSubstr("'" + (directory_ / "plugin") + "' does not exist: install it"),
                    HasSubstr("\nGet it from\nhttps://example.org\\x1b")));
  config_.argv = {"renzan-no-such-program"};
  EXPECT_THAT(ErrorOf(ErrorCode::kConfig),
              HasSubstr("'renzan-no-such-program' is not in PATH: install it"));
  WriteFileAtomically(directory_ / "plugin", "");
  config_.argv = {directory_ / "plugin"};
  EXPECT_THAT(ErrorOf(ErrorCode::kConfig),
              HasSubstr("cannot be executed (Permission denied): make it executable"));
}

TEST_F(ExecPluginTest, AProgramThatFailsIsQuoted) {
  Write("echo secret; echo first >&2; echo 'Token has \033 expired' >&2; exit 255");
  testing::internal::CaptureStderr();
  EXPECT_THAT(
      ErrorOf(ErrorCode::kNoPermission),
      AllOf(HasSubstr("plugin' ended with exit status 255: Token has \\x1b expired: log in"),
            Not(HasSubstr("first"))));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "first\nToken has \033 expired\n");
  Write("kill -9 $$");
  EXPECT_THAT(ErrorOf(ErrorCode::kNoPermission), HasSubstr("was killed by signal 9"));
}

TEST_F(ExecPluginTest, AProgramThatHangsIsGivenUp) {
  Write("echo waiting >&2; sleep 60");
  surroundings_.seconds = 0.3;
  EXPECT_THAT(ErrorOf(ErrorCode::kUnavailable),
              HasSubstr("did not end within 0.3 s: waiting: log"));
  surroundings_.seconds = 60;
  std::stop_source stop;
  stop.request_stop();
  try {
    RunExecPlugin(config_, surroundings_, clock_, stop.get_token());
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTempFail);
  }
}

TEST_F(ExecPluginTest, OtherAnswersAreErrors) {
  Write("echo secret");
  EXPECT_THAT(ErrorOf(ErrorCode::kConfig), HasSubstr("did not write an ExecCredential"));
  Write("");
  EXPECT_THAT(ErrorOf(ErrorCode::kConfig), HasSubstr("did not write an ExecCredential"));
  Write("yes secret");
  EXPECT_THAT(ErrorOf(ErrorCode::kConfig), HasSubstr("wrote too much to its stdout"));
  WriteAnswer({{"token", "secret"}}, kV1Beta1);
  EXPECT_THAT(ErrorOf(ErrorCode::kConfig),
              AllOf(HasSubstr("answered as apiVersion 'client.authentication.k8s.io/v1beta1', but "
                              "it is configured as client.authentication.k8s.io/v1: make both"),
                    Not(HasSubstr("right version"))));
  WriteAnswer(nullptr);
  EXPECT_THAT(ErrorOf(ErrorCode::kConfig), HasSubstr("without a status"));
  WriteAnswer(Json::object());
  EXPECT_THAT(ErrorOf(ErrorCode::kConfig), HasSubstr("neither a token nor a client certificate"));
  WriteAnswer({{"token", 7}});
  EXPECT_THAT(ErrorOf(ErrorCode::kConfig), HasSubstr("status.token that is not text"));
  WriteAnswer({{"token", "secret\r\nX: y"}});
  EXPECT_THAT(ErrorOf(ErrorCode::kConfig), HasSubstr("a token that has blanks"));
  for (const char* time : {"tomorrow", "2026-01-31T12:34:56", "2026-01-31T12:34:56+aa:00"}) {
    WriteAnswer({{"token", "t"}, {"expirationTimestamp", time}});
    EXPECT_THAT(ErrorOf(ErrorCode::kConfig), HasSubstr(std::string(time) + "' that is no time"));
  }
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
