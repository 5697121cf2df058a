#include "renzan/base/tls/make_certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/error.h"

namespace renzan {
namespace {

// `openssl ecparam -name prime256v1 -genkey -noout`, and the pin that curl's manual computes:
// `openssl ec -pubout -outform der | openssl dgst -sha256 -binary | base64`.
constexpr const char* kKey = R"(-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIPWiXPuPW/TvKAR9FEAPERC2nEIoy487EkylmOGwtGcToAoGCCqGSM49
AwEHoUQDQgAEJQpN4SmuB3Y93PhTpS15c18RLJf13b4UJTsVuWgbLsmdMa1UyO6/
uC6nR9W5awSKUx/glFmDmNgf7JikdABXAg==
-----END EC PRIVATE KEY-----
)";
constexpr const char* kPin = "sha256//b67PAlPp6eUzS5/+OLSYU9dWS7RnE4Q9hZuAVYjowQI=";

TEST(MakeCertificate, ThePinIsThatOfCurl) { EXPECT_EQ(PublicKeyPin(kKey), kPin); }

TEST(MakeCertificate, EveryKeyHasAPinOfItsOwn) {
  const std::string key = MakePrivateKey();
  EXPECT_EQ(PublicKeyPin(key), PublicKeyPin(key));
  EXPECT_NE(PublicKeyPin(key), PublicKeyPin(MakePrivateKey()));
}

TEST(MakeCertificate, AKeySignsForItself) {
  EXPECT_THAT(MakeSelfSignedCertificate(kKey, std::string(100, 'x'), 1e9, 10),
              ::testing::StartsWith("-----BEGIN CERTIFICATE-----\n"));
}

TEST(MakeCertificate, RefusesWhatIsNoKey) {
  for (const std::string key : {"", "x", "-----BEGIN PRIVATE KEY-----\nAAAA\n"}) {
    EXPECT_THROW(PublicKeyPin(key), Error) << key;
    EXPECT_THROW(MakeSelfSignedCertificate(key, "x", 1e9, 10), Error) << key;
  }
}

}  // namespace
}  // namespace renzan
