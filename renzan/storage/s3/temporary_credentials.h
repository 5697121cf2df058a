#pragma once

// Credentials that a service gave, and the words in which it refuses them. Pure functions.

#include <string>
#include <string_view>

#include "renzan/base/http/http.h"
#include "renzan/storage/s3/sigv4.h"

namespace renzan::s3 {

struct TemporaryCredentials {
  Credentials credentials;
  double expires_unix_seconds = 0;
};

// Whether `text` can be a key id, a secret or a token: non-empty printable ASCII without spaces.
// Anything else could inject lines into a request.
bool IsKeyText(std::string_view text);

// From the answer of `service`; `expiration` is "2026-01-31T12:34:56Z" or has a fraction of a
// second. Throws Error kIo, which does not show the values, if one is missing or invalid.
TemporaryCredentials MakeTemporary(Credentials credentials, const std::string& expiration,
                                   const std::string& service);

// Throws Error kUnavailable if another attempt may succeed (status 429 and 5xx), else
// kNoPermission. `answer` is what the service said, `next` is what to do.
[[noreturn]] void FailAsRefused(const std::string& service, int status, const std::string& answer,
                                std::string_view next);

// Sends it; a failure is an Error kUnavailable, which begins with `service` and ends with `next`.
HttpAnswer SendTo(const std::string& service, HttpSender& http, const HttpRequest& request,
                  std::string_view next);

}  // namespace renzan::s3
