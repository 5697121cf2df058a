#pragma once

// AWS Signature Version 4 for S3
// (https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html). Pure functions.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace renzan::s3 {

struct Credentials {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;  // empty for permanent credentials

  bool operator==(const Credentials&) const = default;
};

// What is signed.
struct UnsignedRequest {
  std::string method;
  std::string host;  // with its port if that is not the scheme's
  std::string path;  // encoded, begins with '/'
  // Not encoded.
  std::vector<std::pair<std::string, std::string>> query = {};
  // Signed as well, besides host and the headers that signing adds. Names in lower case.
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string payload_sha256;  // in hexadecimal
};

struct SignedRequest {
  std::string query;  // encoded and sorted, without '?'; empty if there is none
  // All headers to send besides Host: those of the request, x-amz-date, x-amz-content-sha256,
  // x-amz-security-token if there is a token, and authorization.
  std::vector<std::pair<std::string, std::string>> headers;
};

// `service` is "s3", except for STS and in others' test vectors; other services get no
// x-amz-content-sha256. No header may appear twice.
SignedRequest Sign(const UnsignedRequest& request, const Credentials& credentials,
                   const std::string& region, int64_t unix_seconds,
                   const std::string& service = "s3");

// Percent-encodes all bytes but letters, digits and -._~, and '/' too unless `keep_slashes`.
std::string UriEncode(std::string_view text, bool keep_slashes);

// Of an empty payload.
constexpr std::string_view kEmptySha256 =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

}  // namespace renzan::s3
