#include "renzan/storage/s3/sigv4.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>

#include "renzan/base/ascii.h"
#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/base/sha256.h"

namespace renzan::s3 {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

std::string Hmac(std::string_view key, std::string_view text) {
  unsigned char code[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(), code,
             &bytes) != nullptr);
  return {reinterpret_cast<const char*>(code), bytes};
}

std::string Hex(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return hex;
}

// "20260131T123456Z"
std::string Timestamp(int64_t unix_seconds) {
  std::string text = FormatUtc(static_cast<double>(unix_seconds));
  std::erase_if(text, [](char c) { return c == '-' || c == ':'; });
  return text;
}

std::string CanonicalQuery(const Pairs& query) {
  Pairs encoded;
  for (const auto& [key, value] : query)
    encoded.emplace_back(UriEncode(key, false), UriEncode(value, false));
  // After encoding, because the order is that of the encoded text.
  std::sort(encoded.begin(), encoded.end());
  std::string text;
  for (const auto& [key, value] : encoded)
    text += fmt::format("{}{}={}", text.empty() ? "" : "&", key, value);
  return text;
}

// Trims spaces at both ends and collapses runs of them within.
std::string CanonicalValue(std::string_view value) {
  std::string text;
  for (const char c : value) {
    const bool is_space = c == ' ' || c == '\t';
    if (is_space && (text.empty() || text.back() == ' ')) continue;
    text += is_space ? ' ' : c;
  }
  if (text.ends_with(' ')) text.pop_back();
  return text;
}

}  // namespace

std::string UriEncode(std::string_view text, bool keep_slashes) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    if (IsLetter(c) || IsDigit(c) || c == '-' || c == '.' || c == '_' || c == '~' ||
        (c == '/' && keep_slashes)) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

SignedRequest Sign(const UnsignedRequest& request, const Credentials& credentials,
                   const std::string& region, int64_t unix_seconds, const std::string& service) {
  CHECK(request.path.starts_with('/'));
  const std::string time = Timestamp(unix_seconds);
  const std::string date = time.substr(0, 8);
  SignedRequest result{.query = CanonicalQuery(request.query), .headers = request.headers};
  result.headers.emplace_back("x-amz-date", time);
  if (service == "s3") result.headers.emplace_back("x-amz-content-sha256", request.payload_sha256);
  if (!credentials.session_token.empty())
    result.headers.emplace_back("x-amz-security-token", credentials.session_token);

  Pairs headers = result.headers;
  headers.emplace_back("host", request.host);
  std::sort(headers.begin(), headers.end());
  std::string names, lines;
  for (const auto& [name, value] : headers) {
    names += (names.empty() ? "" : ";") + name;
    lines += name + ":" + CanonicalValue(value) + "\n";
  }
  const std::string canonical = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, request.path,
                                            result.query, lines, names, request.payload_sha256);
  const std::string scope = fmt::format("{}/{}/{}/aws4_request", date, region, service);
  const std::string to_sign =
      fmt::format("{}\n{}\n{}\n{}", kAlgorithm, time, scope, Sha256Hex(canonical));

  std::string key = "AWS4" + credentials.secret_access_key;
  for (const std::string_view part : {std::string_view(date), std::string_view(region),
                                      std::string_view(service), std::string_view("aws4_request")})
    key = Hmac(key, part);
  result.headers.emplace_back(
      "authorization",
      fmt::format("{} Credential={}/{}, SignedHeaders={}, Signature={}", kAlgorithm,
                  credentials.access_key_id, scope, names, Hex(Hmac(key, to_sign))));
  return result;
}

}  // namespace renzan::s3
