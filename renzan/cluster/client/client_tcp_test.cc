// The client over TCP: what it sends, and to whom it does not send a token.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <microhttpd.h>

#include <map>
#include <mutex>
#include <string>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/http/server_parts.h"
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
  explicit TlsServer(const std::string& key, bool tls = true) {
    const std::string certificate = MakeSelfSignedCertificate(key, "another.name", 1.7e9, 3600);
    const TlsCredentials credentials{.certificate = certificate, .key = key};
    const TlsOptions options(tls ? &credentials : nullptr);
    daemon_ =
        MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | options.flags(), 0, nullptr, nullptr,
                         &Handle, this, MHD_OPTION_ARRAY, options.get(), MHD_OPTION_END);
    CHECK(daemon_ != nullptr);
  }
  ~TlsServer() { MHD_stop_daemon(daemon_); }

  std::string url() const {
    return fmt::format("https://127.0.0.1:{}",
                       MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_BIND_PORT)->port);
  }
  std::string asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  static MHD_Result Handle(void* self, MHD_Connection* connection, const char*, const char*,
                           const char*, const char*, size_t*, void**) {
    TlsServer& server = *static_cast<TlsServer*>(self);
    const char* const given =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    {
      const std::lock_guard lock(server.mutex_);
      server.asked_ = given == nullptr ? "without a token" : given;
    }
    return SendText(connection, 200, "{}", "application/json") ? MHD_YES : MHD_NO;
  }

  std::mutex mutex_;
  std::string asked_;
  MHD_Daemon* daemon_;
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
