#include "renzan/cluster/kubernetes/admission/certificate_renewal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/base/tls/make_certificate.h"
#include "renzan/cluster/kubernetes/api/base64.h"
#include "renzan/cluster/kubernetes/api/certificates.h"
#include "renzan/cluster/kubernetes/controller/world_testing.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

using ::testing::HasSubstr;

constexpr double kDay = 86'400;
struct Died {};

class RenewalTest : public ::testing::Test {
 protected:
  RenewalTest() {
    cluster_.Create(Secrets(), "renzan-system", {{"metadata", {{"name", "kept"}}}});
    MakeConfiguration();
  }

  void MakeConfiguration() {
    const Json webhook = {{"name", "a"}, {"clientConfig", {{"service", {{"name", "b"}}}}}};
    cluster_.Create(
        ValidatingWebhooks(), "",
        {{"metadata", {{"name", "renzan-admission"}}}, {"webhooks", {webhook, webhook}}});
  }
  CertificateRenewal Replica(std::function<void()> meanwhile = [] {}) {
    return CertificateRenewal({.ns = "renzan-system", .secret = "kept"}, cluster_, world_.clock,
                              [this, meanwhile](double seconds) {
                                world_.clock.seconds += seconds;
                                meanwhile();
                              });
  }
  std::string Bundle(int webhook = 0) {
    const Json webhooks =
        At(cluster_.Get(ValidatingWebhooks(), "", "renzan-admission", ""), {"webhooks"});
    EXPECT_EQ(webhooks.size(), 2u);
    return DecodeBase64(TextAt(webhooks[webhook], {"clientConfig", "caBundle"})).value();
  }
  std::string Kept(const char* key) {
    return DecodeBase64(TextAt(cluster_.Get(Secrets(), "renzan-system", "kept", ""), {"data", key}))
        .value();
  }
  bool IsTrusted(const TlsCredentials& pair) {
    return IsIssuedBy(pair.certificate, Bundle(0)) && IsIssuedBy(pair.certificate, Bundle(1)) &&
           CheckServerCertificate(pair.certificate, "", pair.key, "", world_.clock.UnixSeconds())
               .empty();
  }
  static size_t Certificates(const std::string& pem) {
    size_t count = 0;
    for (size_t at = 0; (at = pem.find("BEGIN CERTIFICATE", at)) != std::string::npos; ++at)
      ++count;
    return count;
  }

  World world_;
  FakeCluster& cluster_ = world_.cluster;
};

TEST_F(RenewalTest, MakesTheFirstCertificateAndKeepsIt) {
  const TlsCredentials first = Replica().Turn();
  EXPECT_TRUE(IsTrusted(first));
  EXPECT_EQ(first.certificate, Kept("tls.crt"));
  const auto validity = ValidityOf(first.certificate);
  EXPECT_NEAR(validity->last - world_.clock.UnixSeconds(), 90 * kDay, kDay);
  world_.clock.seconds += 50 * kDay;
  for (int replica = 0; replica < 2; ++replica) {
    CertificateRenewal other = Replica([] { FAIL() << "nothing is renewed"; });
    EXPECT_EQ(other.Turn().certificate, first.certificate);
  }
}

TEST_F(RenewalTest, RenewsWhileBothAreTrusted) {
  const TlsCredentials first = Replica().Turn();
  world_.clock.seconds += 65 * kDay;
  int waited = 0;
  CertificateRenewal renewing = Replica([&] {
    ++waited;
    EXPECT_EQ(Kept("tls.crt"), first.certificate) << "it is used before it is trusted";
    EXPECT_TRUE(IsTrusted(first));
    EXPECT_EQ(Certificates(Bundle()), 2u);
  });
  const TlsCredentials second = renewing.Turn();
  EXPECT_EQ(waited, 1);
  EXPECT_NE(second.certificate, first.certificate);
  // Other replicas serve the first one until they look.
  EXPECT_TRUE(IsTrusted(first));
  EXPECT_TRUE(IsTrusted(second));
  EXPECT_EQ(Replica().Turn().certificate, second.certificate);
  // What has expired is no longer trusted.
  world_.clock.seconds += 65 * kDay;
  const TlsCredentials third = Replica().Turn();
  EXPECT_EQ(Certificates(Bundle()), 2u);
  EXPECT_FALSE(IsTrusted(first));
  EXPECT_TRUE(IsTrusted(second));
  EXPECT_TRUE(IsTrusted(third));
}

// Whichever of two replicas comes first, what is in the Secret is trusted.
TEST_F(RenewalTest, TwoAtOnceAgree) {
  const TlsCredentials first = Replica().Turn();
  world_.clock.seconds += 65 * kDay;
  CertificateRenewal faster = Replica();
  TlsCredentials of_faster;
  CertificateRenewal slower = Replica([&] { of_faster = faster.Turn(); });
  EXPECT_THROW(slower.Turn(), ApiError);
  EXPECT_EQ(Kept("tls.crt"), of_faster.certificate);
  EXPECT_TRUE(IsTrusted(first));
  EXPECT_TRUE(IsTrusted(of_faster));
  EXPECT_EQ(slower.Turn().certificate, of_faster.certificate);
}

TEST_F(RenewalTest, OneThatWasNotCompletedHarmsNothing) {
  const TlsCredentials first = Replica().Turn();
  world_.clock.seconds += 65 * kDay;
  for (int time = 0; time < 20; ++time) {
    CertificateRenewal dying = Replica([] { throw Died(); });
    EXPECT_THROW(dying.Turn(), Died);
    EXPECT_TRUE(IsTrusted(first)) << time;
  }
  EXPECT_LE(Certificates(Bundle()), 10u);
  const TlsCredentials second = Replica().Turn();
  EXPECT_TRUE(IsTrusted(first));
  EXPECT_TRUE(IsTrusted(second));
}

TEST_F(RenewalTest, ServesNothingThatSomebodyHasMadeUntrusted) {
  const TlsCredentials first = Replica().Turn();
  world_.clock.seconds += 65 * kDay;
  const std::string before = EncodeBase64(Bundle());
  CertificateRenewal undone = Replica([&] {
    Json webhooks =
        At(cluster_.Get(ValidatingWebhooks(), "", "renzan-admission", ""), {"webhooks"});
    for (Json& webhook : webhooks) webhook["clientConfig"]["caBundle"] = before;
    cluster_.MergePatch(ValidatingWebhooks(), "", "renzan-admission", {{"webhooks", webhooks}}, "");
  });
  EXPECT_EQ(undone.Turn().certificate, first.certificate);
  EXPECT_EQ(Kept("tls.crt"), first.certificate);
  EXPECT_TRUE(IsTrusted(Replica().Turn()));
}

TEST_F(RenewalTest, RepairsWhatOthersHaveRemoved) {
  const TlsCredentials first = Replica().Turn();
  cluster_.Delete(ValidatingWebhooks(), "", "renzan-admission", "", std::nullopt);
  MakeConfiguration();
  EXPECT_EQ(Replica().Turn().certificate, first.certificate);
  EXPECT_TRUE(IsTrusted(first));
  // A certificate whose authority nobody knows is replaced.
  const MadeCertificate foreign =
      MakeServerCertificate("x", "DNS:x", world_.clock.UnixSeconds(), 90 * kDay);
  cluster_.MergePatch(
      Secrets(), "renzan-system", "kept",
      {{"data",
        {{"tls.crt", EncodeBase64(foreign.certificate)}, {"tls.key", EncodeBase64(foreign.key)}}}},
      "");
  EXPECT_TRUE(IsTrusted(Replica().Turn()));
  cluster_.MergePatch(Secrets(), "renzan-system", "kept", {{"data", {{"tls.key", "????"}}}}, "");
  EXPECT_TRUE(IsTrusted(Replica().Turn()));
  cluster_.MergePatch(Secrets(), "renzan-system", "kept", {{"data", nullptr}}, "");
  EXPECT_TRUE(IsTrusted(Replica().Turn()));
}

TEST(Certificates, SayInGoodTimeThatTheyExpire) {
  const double now = 1'800'000'000;
  const auto why = [&](double life_days, double left_days) {
    const MadeCertificate made = MakeServerCertificate("x", "DNS:x", now, life_days * kDay);
    return WhyItEndsSoon(made.certificate, "tls.crt", now + (life_days - left_days) * kDay);
  };
  EXPECT_EQ(why(3650, 15), "");
  EXPECT_THAT(why(3650, 13.5), HasSubstr("tls.crt: the certificate expires at "));
  EXPECT_THAT(why(3650, 13.5), HasSubstr(", within 14 days: renew it"));
  EXPECT_THAT(why(90, 0.5), HasSubstr("within 1 day: renew"));
  EXPECT_EQ(why(5, 2), "");
  EXPECT_NE(why(5, 0.9), "");
  EXPECT_EQ(why(90, -1), "") << "that it has expired is said by others";
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
