#pragma once

// Addresses of services. Pure functions.

#include <string>
#include <string_view>

namespace renzan::s3 {

// AWS's own address of a service: "https://sts.eu-west-1.amazonaws.com".
std::string AwsEndpoint(std::string_view service, std::string_view region);

// `value` without a trailing '/' and without its scheme's default port. Throws Error kConfig, which
// begins with `origin`, unless it is http:// or https:// with a host and optionally a port.
std::string CheckedEndpoint(std::string_view value, const std::string& origin);

}  // namespace renzan::s3
