// TLS of HttpApi: who trusts whom.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "renzan/cluster/kubernetes/api/certificates_for_test.h"
#include "renzan/cluster/kubernetes/api/http_api.h"
#include "renzan/cluster/kubernetes/api/server_for_test.h"

namespace renzan::cluster::kubernetes {
namespace {

using ::testing::HasSubstr;

const Kind kNodes{"", "v1", "nodes", "Node"};
class TlsTest : public testing::Test {
 protected:
  // The server's name is "apiserver", not its address.
  TlsTest()
      : authority_("authority", "", nullptr, now_ - kTestDay, now_ + kTestDay),
        other_authority_("other", "", nullptr, now_ - kTestDay, now_ + kTestDay),
        server_certificate_("apiserver", "DNS:apiserver", &authority_, now_ - kTestDay,
                            now_ + kTestDay),
        client_("client", "", &authority_, now_ - kTestDay, now_ + kTestDay),
        server_(server_certificate_.certificate(), server_certificate_.key(), Trusted()) {
    server_.Get(".*", [](const httplib::Request&, httplib::Response& response) {
      response.set_content("{\"metadata\": {\"name\": \"a\"}}", "application/json");
    });
    const int port = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
    access_ = {.from = "the test",
               .server = fmt::format("https://127.0.0.1:{}", port),
               .ca_pem = authority_.pem(),
               .tls_server_name = "apiserver",
               .client_certificate_pem = client_.pem(),
               .client_key_pem = client_.key_pem()};
  }
  ~TlsTest() override {
    server_.stop();
    thread_.join();
  }

  // The authorities whose clients the server accepts; the server takes over the store.
  X509_STORE* Trusted() {
    X509_STORE* const store = X509_STORE_new();
    X509_STORE_add_cert(store, authority_.certificate());
    return store;
  }

  std::string ReasonOfGet() {
    try {
      HttpApi(access_).Get(kNodes, "", "a");
    } catch (const ApiError& error) {
      EXPECT_TRUE(error.no_answer());
      message_ = error.what();
      return error.reason();
    }
    return "";
  }

  const time_t now_ = std::time(nullptr);
  TestCertificate authority_, other_authority_, server_certificate_, client_;
  httplib::SSLServer server_;
  std::thread thread_;
  Access access_;
  std::string message_;
};

TEST_F(TlsTest, BothSidesProveWhoTheyAre) { EXPECT_EQ(ReasonOfGet(), "") << message_; }

TEST_F(TlsTest, AServerOfAnotherAuthorityIsNotTrusted) {
  access_.ca_pem = other_authority_.pem();
  EXPECT_EQ(ReasonOfGet(), "NotTrusted");
  EXPECT_THAT(message_, HasSubstr("check certificate-authority and tls-server-name of the test"));
}

TEST_F(TlsTest, AServerWhoseCertificateHasExpiredIsNotTrusted) {
  const TestCertificate expired("apiserver", "DNS:apiserver", &authority_, now_ - 2 * kTestDay,
                                now_ - kTestDay);
  SSL_CTX_use_certificate(server_.ssl_context(), expired.certificate());
  SSL_CTX_use_PrivateKey(server_.ssl_context(), expired.key());
  EXPECT_EQ(ReasonOfGet(), "NotTrusted");
  EXPECT_THAT(message_, HasSubstr("certificate has expired"));
  EXPECT_THAT(message_, HasSubstr("have it renewed on the server"));
}

TEST_F(TlsTest, AServerOfAnotherNameIsNotTrusted) {
  access_.tls_server_name = "";
  EXPECT_EQ(ReasonOfGet(), "NotTrusted");
  access_.tls_server_name = "another";
  EXPECT_EQ(ReasonOfGet(), "NotTrusted");
}

TEST_F(TlsTest, VerificationCanBeTurnedOff) {
  access_.ca_pem = "";
  access_.tls_server_name = "";
  access_.verify_server = false;
  EXPECT_EQ(ReasonOfGet(), "") << message_;
}

TEST_F(TlsTest, AServerRefusesUnknownClients) {
  access_.client_certificate_pem = access_.client_key_pem = "";
  EXPECT_NE(ReasonOfGet(), "");
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
