#include "renzan/storage/s3/endpoint.h"

#include <algorithm>
#include <charconv>

#include "renzan/base/ascii.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"

namespace renzan::s3 {
namespace {

// A name, an IPv4 address or an IPv6 address in brackets.
bool IsHost(std::string_view host) {
  const bool is_v6 = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (is_v6) host = host.substr(1, host.size() - 2);
  return !host.empty() && std::all_of(host.begin(), host.end(), [is_v6](char c) {
    return IsLetter(c) || IsDigit(c) || c == '.' || (is_v6 ? c == ':' : c == '-' || c == '_');
  });
}

// 0 if `text` is not a port.
int PortOf(std::string_view text) {
  int port = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  return error == std::errc() && stop == end && port > 0 && port <= 65535 ? port : 0;
}

}  // namespace

std::string AwsEndpoint(std::string_view service, std::string_view region) {
  return fmt::format("https://{}.{}.amazonaws.com{}", service, region,
                     region.starts_with("cn-") ? ".cn" : "");
}

std::string CheckedEndpoint(std::string_view value, const std::string& origin) {
  constexpr std::string_view kForm = "write http://HOST:PORT or https://HOST, without a path";
  // Not shown: what precedes '@' may be a password.
  if (value.find('@') != std::string_view::npos)
    Fail(ErrorCode::kConfig, "{}: the address holds a user or a password ('@'): {}", origin, kForm);
  const auto fail = [&](std::string_view what) {
    Fail(ErrorCode::kConfig, "{}: '{}' {}: {}", origin, Escape(value), what, kForm);
  };
  const std::string_view scheme = value.substr(0, value.starts_with("https://") ? 8 : 7);
  if (scheme != "http://" && scheme != "https://") fail("does not begin with http:// or https://");
  std::string_view host = value.substr(scheme.size());
  if (host.ends_with('/')) host.remove_suffix(1);
  if (host.find_first_of("/?#") != std::string_view::npos) fail("has a path or a query");

  const size_t colon = host.rfind(':');
  std::string port;
  if (colon != std::string_view::npos && !host.ends_with(']')) {
    const int number = PortOf(host.substr(colon + 1));
    if (number == 0) fail("has no port from 1 to 65535 after its ':'");
    // As in the Host header, which is signed.
    if (number != (scheme == "http://" ? 80 : 443)) port = fmt::format(":{}", number);
    host = host.substr(0, colon);
  }
  if (!IsHost(host)) fail("does not name a host");
  return fmt::format("{}{}{}", scheme, host, port);
}

}  // namespace renzan::s3
