#include "renzan/cluster/kubernetes/admission/admission.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cluster/kubernetes/api/certificates_for_test.h"
#include "renzan/cluster/kubernetes/api/http_api.h"

namespace renzan::cluster::kubernetes {
namespace {

using ::testing::HasSubstr;

// minReplicas > replicas.
constexpr const char* kBadReview = R"({
  "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
  "request": {
    "uid": "7", "operation": "CREATE", "namespace": "ads", "userInfo": {"username": "ann"},
    "resource": {"group": "renzan.dev", "version": "v1alpha1", "resource": "gangjobs"},
    "object": {"metadata": {"name": "ranker"},
               "spec": {"minReplicas": 2, "replicas": 1, "template": {"spec": {}}}}}})";

class AdmissionTest : public ::testing::Test {
 protected:
  AdmissionTest()
      : authority_("authority", "", nullptr, now_ - kTestDay, now_ + kTestDay),
        certificate_("service", "IP:127.0.0.1", &authority_, now_ - kTestDay, now_ + kTestDay) {
    std::signal(SIGPIPE, SIG_IGN);  // as the program does; the client needs it, too
    Write(certificate_.pem(), certificate_.key_pem());
  }

  void Write(const std::string& certificate, const std::string& key) {
    WriteFileAtomically(folder_ / "tls.crt", certificate);
    WriteFileAtomically(folder_ / "tls.key", key);
  }
  std::unique_ptr<Admission> Start() {
    return std::make_unique<Admission>(
        AdmissionOptions{.listen = "127.0.0.1:0",
                         .certificate = folder_ / "tls.crt",
                         .key = folder_ / "tls.key",
                         .reread_seconds = 0.05,
                         .on_certificate = [this](double expires) { expires_ = expires; }},
        // There is no API server: the check works without one.
        MakeHttpApis({.from = "the test", .server = "http://127.0.0.1:9"}),
        /*seed=*/1, SystemClock());
  }
  static int PortOf(const Admission& admission) {
    const std::string url = admission.url();
    return std::stoi(url.substr(url.rfind(':') + 1));
  }
  // "": the server is not trusted, or does not answer.
  std::string Ask(const Admission& admission, const TestCertificate& trusted) {
    httplib::SSLClient client("127.0.0.1", PortOf(admission));
    X509_STORE* const store = X509_STORE_new();
    X509_STORE_add_cert(store, trusted.certificate());
    client.set_ca_cert_store(store);
    client.enable_server_certificate_verification(true);
    const auto answer = client.Post("/validate", kBadReview, "application/json");
    return answer ? answer->body : "";
  }
  static bool Eventually(const std::function<bool()>& condition) {
    const double give_up = SystemClock().MonotonicSeconds() + 60;
    while (!condition()) {
      if (SystemClock().MonotonicSeconds() > give_up) return false;
      ::usleep(10'000);
    }
    return true;
  }
  std::string FailureOfStart() {
    try {
      Start();
      return "";
    } catch (const Error& error) {
      code_ = error.code();
      return error.what();
    }
  }

  const time_t now_ = std::time(nullptr);
  const TemporaryDirectory folder_;
  const TestCertificate authority_, certificate_;
  ErrorCode code_ = ErrorCode::kUsage;
  std::atomic<double> expires_ = 0;
};

TEST_F(AdmissionTest, AnswersOverHttpsWithoutAnApiServer) {
  const auto admission = Start();
  EXPECT_THAT(admission->url(), HasSubstr("https://127.0.0.1:"));
  EXPECT_THAT(Ask(*admission, authority_), HasSubstr("\"allowed\":false"));
  const TestCertificate other("other", "", nullptr, now_ - kTestDay, now_ + kTestDay);
  EXPECT_EQ(Ask(*admission, other), "");
  httplib::Client plain("127.0.0.1", PortOf(*admission));
  EXPECT_FALSE(plain.Post("/validate", kBadReview, "application/json"));
}

TEST_F(AdmissionTest, TakesUpNewCertificates) {
  const auto admission = Start();
  EXPECT_EQ(expires_, now_ + kTestDay);
  const TestCertificate other("other", "", nullptr, now_ - kTestDay, now_ + kTestDay);
  const TestCertificate next("service", "IP:127.0.0.1", &other, now_ - kTestDay,
                             now_ + 9 * kTestDay);
  // For a while the key does not belong to the certificate: the old pair stays in use.
  WriteFileAtomically(folder_ / "tls.crt", next.pem());
  ::usleep(300'000);
  EXPECT_THAT(Ask(*admission, authority_), HasSubstr("\"allowed\":false"));
  WriteFileAtomically(folder_ / "tls.key", next.key_pem());
  EXPECT_TRUE(Eventually([&] { return !Ask(*admission, other).empty(); }));
  EXPECT_EQ(Ask(*admission, authority_), "");
  EXPECT_EQ(expires_, now_ + 9 * kTestDay);
  // And again, as the socket is the same.
  Write(certificate_.pem(), certificate_.key_pem());
  EXPECT_TRUE(Eventually([&] { return !Ask(*admission, authority_).empty(); }));
}

TEST_F(AdmissionTest, ManySilentConnectionsKeepNobodyWaiting) {
  const auto admission = Start();
  std::vector<int> silent;
  for (int i = 0; i < 40; ++i) {
    silent.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(PortOf(*admission)));
    EXPECT_EQ(::connect(silent.back(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  EXPECT_THAT(Ask(*admission, authority_), HasSubstr("\"allowed\":false"));
  for (const int fd : silent) ::close(fd);
}

TEST_F(AdmissionTest, SaysWhatIsWrongWithItsFiles) {
  Write(certificate_.pem(), authority_.key_pem());
  EXPECT_THAT(FailureOfStart(), HasSubstr("tls.key: not the private key of --tls-certificate "));
  EXPECT_EQ(code_, ErrorCode::kConfig);
  Write("nonsense", certificate_.key_pem());
  EXPECT_THAT(FailureOfStart(), HasSubstr("tls.crt: contains no certificate"));
  Write(certificate_.pem(), certificate_.locked_key_pem());
  EXPECT_THAT(FailureOfStart(), HasSubstr("without a passphrase"));
  ::unlink((folder_ / "tls.key").c_str());
  EXPECT_THAT(FailureOfStart(), HasSubstr("tls.key"));
  EXPECT_EQ(code_, ErrorCode::kNoInput);
}

// The controller must not end because of that.
TEST_F(AdmissionTest, AnExpiredCertificateIsNoReasonToEnd) {
  const TestCertificate expired("service", "IP:127.0.0.1", &authority_, now_ - 2 * kTestDay,
                                now_ - kTestDay);
  Write(expired.pem(), expired.key_pem());
  const auto admission = Start();
  EXPECT_EQ(Ask(*admission, authority_), "");
  Write(certificate_.pem(), certificate_.key_pem());
  EXPECT_TRUE(Eventually([&] { return !Ask(*admission, authority_).empty(); }));
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
