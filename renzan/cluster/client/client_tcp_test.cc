// The client over TCP: what it sends, and to whom it does not send a token.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/http/server.h"
#include "renzan/base/process/tcp_listener.h"
#include "renzan/base/tls/make_certificate.h"
#include "renzan/base/tls/tls_credentials.h"
#include "renzan/cluster/client/client.h"
#include "renzan/cluster/client/credential.h"
#include "renzan/cluster/client/paths.h"

namespace renzan::cluster::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Answers every request with "{}", and remembers the Authorization headers.
class TlsServer {
 public:
  explicit TlsServer(const std::string& key, bool tls = true)
      : fd_(ListenOnTcp("127.0.0.1:0", "--listen")),
        port_(UrlOf(fd_).substr(UrlOf(fd_).rfind(':') + 1)),
        server_({.name = "the test's", .listen_fd = fd_, .tls = CredentialsIf(tls, key)},
                {.begin = [this](const ServerRequest& request) { return Answer(request); },
                 .refuse =
                     [](unsigned status, const std::string& why) {
                       return ServerAnswer{.status = status, .text = why};
                     }}) {}

  std::string url() const { return "https://127.0.0.1:" + port_; }
  std::string asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  static std::optional<TlsCredentials> CredentialsIf(bool tls, const std::string& key) {
    if (!tls) return std::nullopt;
    return TlsCredentials{
        .certificate = MakeSelfSignedCertificate(key, "another.name", 1.7e9, 3600), .key = key};
  }

  std::variant<ServerHandlers::Answer, ServerAnswer> Answer(const ServerRequest& request) {
    const std::lock_guard lock(mutex_);
    asked_ = request.authorization.empty() ? "without a token" : request.authorization;
    return ServerHandlers::Answer([](const std::string&) { return ServerAnswer{.text = "{}"}; });
  }

  std::mutex mutex_;
  std::string asked_;
  const int fd_;
  const std::string port_;
  HttpServer server_;
};

class ClientTcpTest : public ::testing::Test {
 protected:
  void Save(const std::string& pin, const std::string& token = "secret") {
    WriteFileAtomically(file_, CredentialText({.address = "https://daemon:7070",
                                               .pin = pin,
                                               .user = "ann",
                                               .expires = "2027-01-01T00:00:00Z",
                                               .token = token}));
  }
  Error ErrorOf(const std::string& address) {
    try {
      Client(Endpoint(address, file_), 20).Get("/v1/status");
    } catch (const Error& error) {
      return error;
    }
    return {ErrorCode::kSoftware, "no error"};
  }

  TemporaryDirectory dir_;
  const std::string file_ = dir_ / "ann.token";
  const std::string key_ = MakePrivateKey();
};

// Whatever its certificate says: its name is another one, and it has expired.
TEST_F(ClientTcpTest, KnowsTheDaemonByItsKey) {
  TlsServer server(key_);
  Save(PublicKeyPin(key_));
  Client client(Endpoint(server.url(), file_));
  EXPECT_EQ(client.Get("/v1/status"), "{}");
  EXPECT_EQ(server.asked(), "Bearer secret");
  Save(PublicKeyPin(key_), "newer");
  client.Get("/v1/status");
  EXPECT_EQ(server.asked(), "Bearer newer") << "the file is read for every request";
}

TEST_F(ClientTcpTest, SendsTheTokenToNobodyElse) {
  TlsServer server(key_);
  Save(PublicKeyPin(MakePrivateKey()));
  const Error error = ErrorOf(server.url());
  EXPECT_EQ(error.code(), ErrorCode::kNoPermission);
  EXPECT_THAT(error.what(), AllOf(HasSubstr(server.url()), HasSubstr("another key"),
                                  HasSubstr("ann.token"), HasSubstr("token create")));
  EXPECT_EQ(server.asked(), "");
}

TEST_F(ClientTcpTest, NeverSendsItWithoutTls) {
  TlsServer server(key_, /*tls=*/false);
  Save(PublicKeyPin(key_));
  EXPECT_EQ(ErrorOf(server.url()).code(), ErrorCode::kUnavailable);
  const std::string plain = "http" + server.url().substr(5);
  const Error error = ErrorOf(plain);
  EXPECT_EQ(error.code(), ErrorCode::kUsage);
  EXPECT_THAT(error.what(), HasSubstr("https://HOST:PORT"));
  EXPECT_EQ(server.asked(), "");
}

TEST_F(ClientTcpTest, RefusesFilesThatAreNoCredential) {
  const std::string url = "https://127.0.0.1:1";
  Error error = ErrorOf(url);
  EXPECT_EQ(error.code(), ErrorCode::kNoPermission);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("ann.token"), HasSubstr("RENZAN_TOKEN_FILE")));
  const std::string pin = PublicKeyPin(key_);
  for (const std::string& text : std::vector<std::string>{
           "", "0123", "[]", "{}", R"({"address": "https://a:1", "pin": "", "token": "x"})",
           R"({"address": "https://a:1", "pin": "/etc/key.pem", "token": "x"})",
           R"({"address": "http://a:1", "pin": ")" + pin + R"(", "token": "x"})",
           R"({"address": "https://a:1", "pin": ")" + pin + R"(", "token": "x\r\ny"})",
           R"({"address": "https://a:1", "pin": ")" + pin + R"("})"}) {
    WriteFileAtomically(file_, text);
    error = ErrorOf(url);
    EXPECT_EQ(error.code(), ErrorCode::kNoPermission) << text;
    EXPECT_THAT(error.what(), HasSubstr("is not the file of a token")) << text;
  }
  Save(pin);
  EXPECT_EQ(ErrorOf(url).code(), ErrorCode::kUnavailable);
  EXPECT_EQ(ReadCredential(file_).address, "https://daemon:7070");
}

TEST(TokenFile, IsThatOfTheEnvironment) {
  EXPECT_EQ(TokenFile([](const char*) { return nullptr; }), "");
  EXPECT_EQ(TokenFile([](const char*) { return "/ann.token"; }), "/ann.token");
}

}  // namespace
}  // namespace renzan::cluster::client
