#include "renzan/storage/s3/sigv4.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/sha256.h"

namespace renzan::s3 {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::StartsWith;

std::string Authorization(const SignedRequest& request) {
  EXPECT_EQ(request.headers.back().first, "authorization");
  return request.headers.back().second;
}

// The examples of
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html.
SignedRequest SignAsS3Example(UnsignedRequest request) {
  request.host = "examplebucket.s3.amazonaws.com";
  if (request.payload_sha256.empty()) request.payload_sha256 = kEmptySha256;
  return Sign(request,
              {.access_key_id = "AKIAIOSFODNN7EXAMPLE",
               .secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
               .session_token = ""},
              "us-east-1", 1369353600);
}

std::string S3Example(const std::string& signed_headers, const std::string& signature) {
  return "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
         "SignedHeaders=" +
         signed_headers + ", Signature=" + signature;
}

TEST(SigV4, GetObjectWithARange) {
  const SignedRequest request = SignAsS3Example({.method = "GET",
                                                 .host = "",
                                                 .path = "/test.txt",
                                                 .headers = {{"range", "bytes=0-9"}},
                                                 .payload_sha256 = ""});
  EXPECT_EQ(Authorization(request),
            S3Example("host;range;x-amz-content-sha256;x-amz-date",
                      "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"));
  EXPECT_EQ(request.query, "");
  EXPECT_THAT(request.headers,
              ElementsAre(Pair("range", "bytes=0-9"), Pair("x-amz-date", "20130524T000000Z"),
                          Pair("x-amz-content-sha256", kEmptySha256),
                          Pair("authorization", StartsWith("AWS4-HMAC-SHA256 "))));
}

TEST(SigV4, PutObject) {
  const SignedRequest request =
      SignAsS3Example({.method = "PUT",
                       .host = "",
                       .path = UriEncode("/test$file.text", true),
                       .headers = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                                   {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                       .payload_sha256 = Sha256Hex("Welcome to Amazon S3.")});
  EXPECT_EQ(Authorization(request),
            S3Example("date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
                      "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"));
}

TEST(SigV4, AKeyWithoutAValueInTheQuery) {
  const SignedRequest request = SignAsS3Example({.method = "GET",
                                                 .host = "",
                                                 .path = "/",
                                                 .query = {{"lifecycle", ""}},
                                                 .payload_sha256 = ""});
  EXPECT_EQ(Authorization(request),
            S3Example("host;x-amz-content-sha256;x-amz-date",
                      "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
  EXPECT_EQ(request.query, "lifecycle=");
}

TEST(SigV4, ListObjects) {
  const SignedRequest request = SignAsS3Example({.method = "GET",
                                                 .host = "",
                                                 .path = "/",
                                                 .query = {{"prefix", "J"}, {"max-keys", "2"}},
                                                 .payload_sha256 = ""});
  EXPECT_EQ(Authorization(request),
            S3Example("host;x-amz-content-sha256;x-amz-date",
                      "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
  EXPECT_EQ(request.query, "max-keys=2&prefix=J");
}

// AWS's generic suite (aws-sig-v4-test-suite), whose requests have no x-amz-content-sha256.
struct Vector {
  std::string name;
  UnsignedRequest request;
  std::string session_token;
  std::string signed_headers;
  std::string signature;
};

UnsignedRequest Get(std::string path, std::vector<std::pair<std::string, std::string>> query = {}) {
  return {.method = "GET",
          .host = "example.amazonaws.com",
          .path = std::move(path),
          .query = std::move(query),
          .payload_sha256 = std::string(kEmptySha256)};
}

TEST(SigV4, GenericSuite) {
  UnsignedRequest post = Get("/");
  post.method = "POST";
  UnsignedRequest to_trim = Get("/");
  to_trim.headers = {{"my-header2", "\"a   b   c\""}, {"my-header1", " value1 "}};
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const std::string names = "host;x-amz-date";
  const std::vector<Vector> vectors = {
      {"get-vanilla", Get("/"), "", names,
       "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
      {"get-vanilla-query-order-key-case", Get("/", {{"Param2", "value2"}, {"Param1", "value1"}}),
       "", names, "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
      {"get-vanilla-query-order-value", Get("/", {{"Param1", "value2"}, {"Param1", "value1"}}), "",
       names, "5772eed61e12b33fae39ee5e7012498b51d56abc0abb7c60486157bd471c4694"},
      {"get-vanilla-utf8-query", Get("/", {{"\u1234", "bar"}}), "", names,
       "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
      {"get-unreserved", Get(UriEncode("/-._~0123456789" + letters, true)), "", names,
       "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
      {"get-utf8", Get(UriEncode("/\u1234", true)), "", names,
       "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
      {"get-space-unnormalized", Get(UriEncode("/example space/", true)), "", names,
       "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"},
      {"get-header-value-trim", to_trim, "", "host;my-header1;my-header2;x-amz-date",
       "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
      {"get-vanilla-with-session-token", Get("/"),
       "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267",
       names + ";x-amz-security-token",
       "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8"},
      {"post-vanilla", post, "", names,
       "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
  };
  for (const Vector& vector : vectors) {
    SCOPED_TRACE(vector.name);
    const SignedRequest request =
        Sign(vector.request,
             {.access_key_id = "AKIDEXAMPLE",
              .secret_access_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
              .session_token = vector.session_token},
             "us-east-1", 1440938160, "service");
    EXPECT_EQ(Authorization(request),
              "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
              "SignedHeaders=" +
                  vector.signed_headers + ", Signature=" + vector.signature);
  }
}

TEST(SigV4, ASessionTokenIsSentAndSigned) {
  UnsignedRequest request = Get("/");
  const Credentials credentials{
      .access_key_id = "ID", .secret_access_key = "SECRET", .session_token = "TOKEN"};
  EXPECT_THAT(
      Sign(request, credentials, "eu-west-1", 0).headers,
      ElementsAre(
          Pair("x-amz-date", "19700101T000000Z"), Pair("x-amz-content-sha256", kEmptySha256),
          Pair("x-amz-security-token", "TOKEN"),
          Pair("authorization", StartsWith("AWS4-HMAC-SHA256 "
                                           "Credential=ID/19700101/eu-west-1/s3/aws4_request, "
                                           "SignedHeaders=host;x-amz-content-sha256;x-amz-date;"
                                           "x-amz-security-token, Signature="))));
}

TEST(SigV4, QueriesAreSortedAsEncoded) {
  const auto query = [](std::vector<std::pair<std::string, std::string>> pairs) {
    return SignAsS3Example({.method = "GET",
                            .host = "",
                            .path = "/",
                            .query = std::move(pairs),
                            .payload_sha256 = ""})
        .query;
  };
  // '.' is less than '/', but '/' is encoded as "%2F".
  EXPECT_EQ(query({{"x", "a.b"}, {"x", "a/b"}}), "x=a%2Fb&x=a.b");
  EXPECT_EQ(query({{"a.b", "1"}, {"a/b", "2"}}), "a%2Fb=2&a.b=1");
  // A key that is a prefix of another comes first, although '=' is greater than '-' and digits.
  EXPECT_EQ(query({{"part-number", "1"}, {"part", "2"}}), "part=2&part-number=1");
  EXPECT_EQ(query({{"uploads", ""}, {"prefix", "a b+c=d&e"}}), "prefix=a%20b%2Bc%3Dd%26e&uploads=");
}

TEST(SigV4, UriEncodeKeepsOnlyWhatIsUnreserved) {
  EXPECT_EQ(UriEncode("/a b/\xff*'()!%", true), "/a%20b/%FF%2A%27%28%29%21%25");
  EXPECT_EQ(UriEncode("a/b", false), "a%2Fb");
  EXPECT_EQ(UriEncode(std::string_view("\0~", 2), false), "%00~");
}

}  // namespace
}  // namespace renzan::s3
