#include "renzan/cluster/kubernetes/api/kube_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "renzan/base/clock_testing.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cluster/kubernetes/api/certificates_for_test.h"

namespace renzan::cluster::kubernetes {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Base64(const std::string& text) {
  std::string coded(4 * ((text.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(coded.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  coded.resize(static_cast<size_t>(size));
  return coded;
}

class KubeConfigTest : public testing::Test {
 protected:
  // A file with one context of these keys of its cluster and user.
  std::string Write(const std::string& cluster, const std::string& user,
                    const std::string& name = "config") {
    return WriteText(
        fmt::format("current-context: dev\n"
                    "contexts:\n"
                    "- {{name: dev, context: {{cluster: c, user: u, namespace: team}}}}\n"
                    "- {{name: production, context: {{cluster: lost}}}}\n"
                    "clusters:\n"
                    "- {{name: c, cluster: {{{}}}}}\n"
                    "users:\n"
                    "- {{name: u, user: {{{}}}}}\n",
                    cluster, user),
        name);
  }
  std::string WriteText(const std::string& text, const std::string& name = "config") {
    const std::string path = directory_ / name;
    WriteFileAtomically(path, text);
    return path;
  }

  Access Find(const std::string& path = "", const std::string& context = "") {
    return FindAccess({.path = path,
                       .context = context,
                       .environment =
                           [this](const char* name) {
                             const auto found = variables_.find(name);
                             return found == variables_.end() ? nullptr : found->second.c_str();
                           },
                       .what_else = what_else_,
                       .pod_directory = directory_ / "pod"},
                      clock_);
  }
  std::string ErrorOf(const std::string& path, ErrorCode code = ErrorCode::kConfig,
                      const std::string& context = "") {
    try {
      Find(path, context);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }

  TemporaryDirectory directory_;
  std::map<std::string, std::string> variables_;
  std::string what_else_;
  ManualClock clock_;
  const time_t now_ = static_cast<time_t>(clock_.UnixSeconds());
  TestCertificate authority_{"authority", "", nullptr, now_ - kTestDay, now_ + kTestDay};
  TestCertificate client_{"client", "", &authority_, now_ - kTestDay, now_ + kTestDay};
  const std::string server_ = "server: 'https://h:6443/'";
};

TEST_F(KubeConfigTest, ReadsFilesBesideIt) {
  WriteFileAtomically(directory_ / "ca.pem", authority_.pem());
  WriteFileAtomically(directory_ / "client.pem", client_.pem());
  WriteFileAtomically(directory_ / "key.pem", client_.key_pem());
  WriteFileAtomically(directory_ / "token", "t");
  const Access access =
      Find(Write(server_ + ", certificate-authority: ca.pem, tls-server-name: api, "
                           "proxy-url: 'http://proxy:3128'",
                 "tokenFile: token, client-certificate: client.pem, client-key: key.pem"));
  EXPECT_EQ(access.server, "https://h:6443");
  EXPECT_EQ(access.default_namespace, "team");
  EXPECT_EQ(access.ca_pem, authority_.pem());
  EXPECT_EQ(access.tls_server_name, "api");
  EXPECT_EQ(access.proxy_url, "http://proxy:3128");
  EXPECT_TRUE(access.verify_server);
  EXPECT_EQ(access.client_certificate_pem, client_.pem());
  EXPECT_EQ(access.client_key_pem, client_.key_pem());
  EXPECT_EQ(access.credentials->Get({})->token, "t");
  EXPECT_EQ(access.from, directory_ / "config" + ", context dev");
}

TEST_F(KubeConfigTest, ReadsDataWithinIt) {
  const Access access = Find(
      Write(fmt::format("{}, certificate-authority-data: {}", server_, Base64(authority_.pem())),
            fmt::format("token: abc, client-certificate-data: {}, client-key-data: {}",
                        Base64(client_.pem()), Base64(client_.key_pem()))));
  EXPECT_EQ(access.token, "abc");
  EXPECT_EQ(access.ca_pem, authority_.pem());
  EXPECT_EQ(access.client_certificate_pem, client_.pem());
  EXPECT_EQ(access.client_key_pem, client_.key_pem());
}

TEST_F(KubeConfigTest, VerificationIsOnUnlessTheFileSaysOtherwise) {
  EXPECT_TRUE(Find(Write(server_, "")).verify_server);
  EXPECT_FALSE(Find(Write(server_ + ", insecure-skip-tls-verify: true", "")).verify_server);
  EXPECT_THAT(ErrorOf(Write(server_ + ", insecure-skip-tls-verify: maybe", "")),
              HasSubstr("clusters.c.cluster.insecure-skip-tls-verify: 'maybe' is neither true"));
}

TEST_F(KubeConfigTest, FindsTheFile) {
  const auto write = [this](const std::string& name) {
    return Write("server: 'https://" + name + "'", "", name);
  };
  const std::string a = write("a"), b = write("b");
  EXPECT_THAT(ErrorOf("", ErrorCode::kNoInput), HasSubstr("and this is not a pod: set KUBECONFIG"));
  variables_["HOME"] = directory_.path();
  EXPECT_THAT(ErrorOf("", ErrorCode::kNoInput), HasSubstr("there is no ~/.kube/config"));
  CreateDirectories(directory_ / ".kube");
  write(".kube/config");
  EXPECT_EQ(Find().server, "https://.kube/config");
  variables_["KUBECONFIG"] = directory_ / "missing" + "::" + b + ":" + a;
  EXPECT_EQ(Find().server, "https://b");
  EXPECT_EQ(Find(a).server, "https://a");
  variables_["KUBECONFIG"] = directory_ / "missing";
  EXPECT_THAT(ErrorOf("", ErrorCode::kNoInput),
              AllOf(StartsWith("$KUBECONFIG: there is no file " + directory_.path()),
                    HasSubstr("unset it")));
  EXPECT_THAT(ErrorOf(directory_ / "missing", ErrorCode::kNoInput),
              HasSubstr(directory_ / "missing"));
}

TEST_F(KubeConfigTest, NamesTheContextsThatExist) {
  const std::string path = Write(server_, "");
  EXPECT_EQ(Find(path, "dev").server, "https://h:6443");
  EXPECT_THAT(ErrorOf(path, ErrorCode::kConfig, "prodution"),
              AllOf(HasSubstr("there is no 'prodution' in " + path + ": contexts"),
                    HasSubstr("did you mean 'production'?")));
  EXPECT_THAT(ErrorOf(path, ErrorCode::kConfig, "elsewhere"), HasSubstr("it has dev, production"));
  EXPECT_THAT(ErrorOf(path, ErrorCode::kConfig, "production"),
              HasSubstr("contexts.production.context.cluster: there is no 'lost'"));
  EXPECT_THAT(ErrorOf(WriteText("contexts: []")),
              HasSubstr("config: current-context: is not set: name a context"));
  EXPECT_THAT(ErrorOf(WriteText("current-context: a")), HasSubstr("is it the right file?"));
}

TEST_F(KubeConfigTest, InvalidFilesAreErrorsWithTheirPlace) {
  EXPECT_THAT(ErrorOf(WriteText("a: b\n  c: [")), HasSubstr(directory_ / "config" + ":2:"));
  EXPECT_THAT(ErrorOf(WriteText("just text")), HasSubstr("is not a section with keys"));
  EXPECT_THAT(ErrorOf(WriteText("current-context: a\ncontexts: 3")),
              HasSubstr("contexts: must be a list"));
  EXPECT_THAT(ErrorOf(WriteText("current-context: a\ncontexts: [b]")),
              HasSubstr("contexts: every entry must have a name"));
  EXPECT_THAT(ErrorOf(WriteText("current-context: [a]")), HasSubstr("must be a single value"));
  EXPECT_THAT(ErrorOf(WriteText("current-context: a\ncontexts: [{name: a}]")),
              HasSubstr("contexts.a.context is not a section"));
  EXPECT_THAT(ErrorOf(Write("", "")), HasSubstr("clusters.c.cluster.server: is not set"));
  EXPECT_THAT(ErrorOf(Write("server: 'h:6443'", "")), HasSubstr("expected https://HOST:PORT"));
}

TEST_F(KubeConfigTest, AFileThatIsNamedMustBeReadable) {
  EXPECT_THAT(
      ErrorOf(Write(server_ + ", certificate-authority: lost.pem", ""), ErrorCode::kNoInput),
      AllOf(HasSubstr("config: clusters.c.cluster.certificate-authority: "),
            HasSubstr(directory_ / "lost.pem"), HasSubstr("make the file readable")));
  EXPECT_THAT(ErrorOf(Write(server_, "tokenFile: lost"), ErrorCode::kNoInput),
              HasSubstr("users.u.user.tokenFile: "));
}

TEST_F(KubeConfigTest, ChecksAuthorities) {
  EXPECT_THAT(ErrorOf(Write(server_ + ", certificate-authority-data: '%%%%'", "")),
              HasSubstr("certificate-authority-data: is not valid base64"));
  EXPECT_THAT(ErrorOf(Write(server_ + ", certificate-authority-data: " + Base64("text"), "")),
              HasSubstr("certificate-authority-data: contains no certificate"));
  EXPECT_THAT(ErrorOf(Write(fmt::format("{}, insecure-skip-tls-verify: true, "
                                        "certificate-authority-data: {}",
                                        server_, Base64(authority_.pem())),
                            "")),
              HasSubstr("insecure-skip-tls-verify: contradicts certificate-authority"));
}

TEST_F(KubeConfigTest, ChecksClientCertificates) {
  const auto error_of = [&](const std::string& certificate, const std::string& key) {
    return ErrorOf(
        Write(server_, fmt::format("client-certificate-data: '{}', client-key-data: '{}'",
                                   Base64(certificate), Base64(key))));
  };
  EXPECT_THAT(error_of(client_.pem(), ""), HasSubstr("client-key: is not set, but"));
  EXPECT_THAT(error_of("", client_.key_pem()), HasSubstr("client-certificate: is not set, but"));
  EXPECT_THAT(error_of("x", client_.key_pem()),
              HasSubstr("client-certificate-data: contains no certificate"));
  EXPECT_THAT(error_of(client_.pem(), "x"), HasSubstr("client-key-data: contains no private key"));
  EXPECT_THAT(error_of(client_.pem(), client_.locked_key_pem()),
              HasSubstr("remove the passphrase"));
  EXPECT_THAT(error_of(client_.pem(), authority_.key_pem()), HasSubstr("not the private key of"));
  const TestCertificate old("client", "", &authority_, now_ - 2 * kTestDay, now_ - kTestDay);
  EXPECT_THAT(
      error_of(old.pem(), old.key_pem()),
      AllOf(HasSubstr("users.u.user.client-certificate-data: the client certificate expired "
                      "at " +
                      FormatUtc(static_cast<double>(now_ - kTestDay))),
            HasSubstr("get new credentials")));
  const TestCertificate early("client", "", &authority_, now_ + kTestDay, now_ + 2 * kTestDay);
  EXPECT_THAT(error_of(early.pem(), early.key_pem()), HasSubstr("check this machine's clock"));
}

TEST_F(KubeConfigTest, UnsupportedCredentialsSayWhatToUse) {
  for (const std::string key :
       {"auth-provider: {name: x}", "password: x", "username: x", "as: someone"}) {
    const std::string name = key.substr(0, key.find(':'));
    EXPECT_THAT(ErrorOf(Write(server_, key)),
                AllOf(HasSubstr("config: users.u.user." + name + ": "), HasSubstr("`exec`")));
  }
}

TEST_F(KubeConfigTest, AuthProvidersHaveSuccessors) {
  EXPECT_THAT(ErrorOf(Write(server_, "auth-provider: {name: gcp}")),
              AllOf(HasSubstr("users.u.user.auth-provider: Kubernetes has had no such providers"),
                    HasSubstr("get-credentials")));
}

// A program that answers with the token "t" and writes down what it was told.
class KubeExecTest : public KubeConfigTest {
 protected:
  KubeExecTest() {
    CreateDirectories(directory_ / "bin");
    WriteFileAtomically(
        directory_ / "bin/plugin",
        "#!/bin/sh\necho \"$1 $A $B\" > " + (directory_ / "seen") +
            "\nprintf %s \"$KUBERNETES_EXEC_INFO\" > " + (directory_ / "info") +
            "\necho '{\"apiVersion\": \"client.authentication.k8s.io/v1beta1\", \"kind\": "
            "\"ExecCredential\", \"status\": {\"token\": \"t\"}}'\n");
    std::filesystem::permissions(directory_ / "bin/plugin", std::filesystem::perms::owner_all);
  }
  static std::string Exec(const std::string& more = "") {
    return "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: bin/plugin" + more +
           "}";
  }
  nlohmann::json Info() { return nlohmann::json::parse(ReadFile(directory_ / "info")); }
};

TEST_F(KubeExecTest, TheProgramLiesBesideTheFile) {
  const Access access =
      Find(Write(server_, Exec(", args: [get-token], env: [{name: A, value: '1'}, {name: B, value: "
                               "x=y}], installHint: x, interactiveMode: Never")));
  ASSERT_TRUE(access.credentials);
  EXPECT_FALSE(FileExists(directory_ / "seen"));
  EXPECT_EQ(access.credentials->Get({})->token, "t");
  EXPECT_EQ(ReadFile(directory_ / "seen"), "get-token 1 x=y\n");
  EXPECT_EQ(Info()["spec"], nlohmann::json({{"interactive", false}}));
}

TEST_F(KubeExecTest, TheProgramIsToldAboutTheClusterIfItAsks) {
  const std::string cluster = fmt::format(
      "{}, certificate-authority-data: {}, tls-server-name: api, proxy-url: 'http://proxy', "
      "extensions: [{{name: other, extension: {{}}}}, {{name: client.authentication.k8s.io/exec, "
      "extension: {{audience: '7', n: 7}}}}]",
      server_, Base64(authority_.pem()));
  Find(Write(cluster, Exec(", provideClusterInfo: true"))).credentials->Get({});
  EXPECT_EQ(Info()["spec"]["cluster"],
            nlohmann::json({{"server", "https://h:6443"},
                            {"certificate-authority-data", Base64(authority_.pem())},
                            {"tls-server-name", "api"},
                            {"proxy-url", "http://proxy"},
                            {"config", {{"audience", "7"}, {"n", 7}}}}));
  Find(Write(server_ + ", insecure-skip-tls-verify: true", Exec(", provideClusterInfo: true")))
      .credentials->Get({});
  EXPECT_EQ(Info()["spec"]["cluster"],
            nlohmann::json({{"server", "https://h:6443"}, {"insecure-skip-tls-verify", true}}));
  Find(Write(cluster, Exec(", provideClusterInfo: false"))).credentials->Get({});
  EXPECT_FALSE(Info()["spec"].contains("cluster"));
}

TEST_F(KubeExecTest, OtherCredentialsWin) {
  EXPECT_FALSE(Find(Write(server_, "token: mine, " + Exec())).credentials);
  WriteFileAtomically(directory_ / "token", "file");
  EXPECT_EQ(Find(Write(server_, "tokenFile: token, " + Exec())).credentials->Get({})->token,
            "file");
  EXPECT_FALSE(
      Find(Write(server_, fmt::format("client-certificate-data: {}, client-key-data: {}, {}",
                                      Base64(client_.pem()), Base64(client_.key_pem()), Exec())))
          .credentials);
}

TEST_F(KubeExecTest, ChecksTheProgramsEntry) {
  const auto error_of = [&](const std::string& exec) { return ErrorOf(Write(server_, exec)); };
  EXPECT_THAT(error_of("exec: {command: x}"),
              HasSubstr("config: users.u.user.exec.apiVersion: is not set: have"));
  EXPECT_THAT(error_of("exec: {command: x, apiVersion: client.authentication.k8s.io/v1alpha1}"),
              HasSubstr("'client.authentication.k8s.io/v1alpha1' is not supported: have"));
  EXPECT_THAT(error_of("exec: {apiVersion: client.authentication.k8s.io/v1}"),
              HasSubstr("users.u.user.exec.command: is not set: name the program"));
  EXPECT_THAT(error_of("exec: x"), HasSubstr("users.u.user.exec is not a section"));
  EXPECT_THAT(error_of(Exec(", interactiveMode: Sometimes")),
              HasSubstr("interactiveMode: 'Sometimes' is none of Never"));
  EXPECT_THAT(error_of(Exec(", args: x")), HasSubstr("exec.args: must be a list"));
  EXPECT_THAT(error_of(Exec(", args: [[x]]")),
              HasSubstr("exec.args: every entry must be a single"));
  EXPECT_THAT(error_of(Exec(", env: [{value: x}]")), HasSubstr("exec.env.name: is not set"));
  EXPECT_THAT(ErrorOf(Write("server: 'http://h:80'", Exec())), HasSubstr("unencrypted"));
}

TEST_F(KubeConfigTest, ATokenFileThatVanishesKeepsItsToken) {
  WriteFileAtomically(directory_ / "token", "first");
  const Access access = Find(Write(server_, "tokenFile: token"));
  std::filesystem::remove(directory_ / "token");
  testing::internal::CaptureStderr();
  EXPECT_EQ(access.credentials->Get({})->token, "first");
  clock_.seconds += 60;
  EXPECT_EQ(access.credentials->Get({})->token, "first");
  clock_.seconds += 5;
  EXPECT_EQ(access.credentials->Get({})->token, "first");
  const std::string warned = testing::internal::GetCapturedStderr();
  EXPECT_THAT(warned, HasSubstr("context dev names: cannot read " + (directory_ / "token")));
  EXPECT_EQ(warned.find("stays in use"), warned.rfind("stays in use"));
  WriteFileAtomically(directory_ / "token", "second");
  clock_.seconds += 5;
  EXPECT_EQ(access.credentials->Get({})->token, "second");
}

TEST_F(KubeConfigTest, ARefusedTokenOfAFileIsReadAgain) {
  WriteFileAtomically(directory_ / "token", "first");
  const auto credentials = Find(Write(server_, "tokenFile: token")).credentials;
  const auto first = credentials->Get({});
  EXPECT_FALSE(credentials->Renew(first, {}));
  WriteFileAtomically(directory_ / "token", "second");
  EXPECT_TRUE(credentials->Renew(first, {}));
  // Refused on another connection as well, which sees that it has been renewed.
  EXPECT_TRUE(credentials->Renew(first, {}));
  EXPECT_FALSE(credentials->Renew(credentials->Get({}), {}));
}

TEST_F(KubeConfigTest, TokensAreNotSentUnencrypted) {
  EXPECT_THAT(ErrorOf(Write("server: 'http://h:80'", "token: t")), HasSubstr("unencrypted"));
  EXPECT_THAT(ErrorOf(Write("server: 'http://localhost.example.org'", "token: t")),
              HasSubstr("unencrypted"));
  EXPECT_EQ(Find(Write("server: 'http://127.0.0.1:8001'", "token: t")).token, "t");
  EXPECT_EQ(Find(Write("server: 'http://h:80'", "")).server, "http://h:80");
}

TEST_F(KubeConfigTest, WithoutAnyFileItSaysWhatToDo) {
  what_else_ = "ask Ann";
  for (const char* home : {"", "/nowhere"}) {
    variables_["HOME"] = home;
    EXPECT_THAT(ErrorOf("", ErrorCode::kNoInput),
                HasSubstr("set KUBECONFIG to a kubeconfig file, or ask Ann"));
  }
  EXPECT_THAT(ErrorOf("/nowhere", ErrorCode::kNoInput),
              AllOf(HasSubstr("--kubeconfig: there is no file /nowhere: name one"),
                    HasSubstr("leave the option out")));
}

TEST_F(KubeConfigTest, APodHasAServiceAccount) {
  variables_["KUBERNETES_SERVICE_HOST"] = "fd00::1";
  EXPECT_THAT(ErrorOf("", ErrorCode::kNoInput),
              AllOf(HasSubstr(directory_ / "pod"), HasSubstr("automountServiceAccountToken")));
  CreateDirectories(directory_ / "pod");
  WriteFileAtomically(directory_ / "pod/token", "t");
  WriteFileAtomically(directory_ / "pod/ca.crt", "x");
  EXPECT_THAT(ErrorOf(""), HasSubstr("ca.crt: contains no certificate"));
  WriteFileAtomically(directory_ / "pod/ca.crt", authority_.pem());
  EXPECT_EQ(Find().server, "https://[fd00::1]:443");
  EXPECT_EQ(Find().default_namespace, "default");
  variables_["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
  variables_["KUBERNETES_SERVICE_PORT"] = "6443";
  WriteFileAtomically(directory_ / "pod/namespace", "team");
  const Access access = Find();
  EXPECT_EQ(access.server, "https://10.0.0.1:6443");
  EXPECT_EQ(access.credentials->Get({})->token, "t");
  EXPECT_EQ(access.token, "");
  EXPECT_EQ(access.ca_pem, authority_.pem());
  EXPECT_EQ(access.default_namespace, "team");
  EXPECT_THAT(ErrorOf("", ErrorCode::kNoInput, "dev"), HasSubstr("a pod has no contexts"));
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
