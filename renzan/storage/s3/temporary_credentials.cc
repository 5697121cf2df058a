#include "renzan/storage/s3/temporary_credentials.h"

#include <algorithm>
#include <optional>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"

namespace renzan::s3 {

bool IsKeyText(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

TemporaryCredentials MakeTemporary(Credentials credentials, const std::string& expiration,
                                   const std::string& service) {
  const auto check = [&](const std::string& text, std::string_view what) {
    if (!IsKeyText(text)) Fail(ErrorCode::kIo, "{}: the answer has no valid {}", service, what);
  };
  check(credentials.access_key_id, "access key id");
  check(credentials.secret_access_key, "secret access key");
  check(credentials.session_token, "session token");
  const std::optional<double> expires = ParseUtc(expiration);
  if (!expires)
    Fail(ErrorCode::kIo, "{}: the answer's expiration '{}' is no time such as 2026-01-31T12:34:56Z",
         service, Escape(expiration));
  return {.credentials = std::move(credentials), .expires_unix_seconds = *expires};
}

void FailAsRefused(const std::string& service, int status, const std::string& answer,
                   std::string_view next) {
  const bool is_passing = status == 429 || status >= 500;
  Fail(is_passing ? ErrorCode::kUnavailable : ErrorCode::kNoPermission,
       "{} gave no credentials (status {}{}{}): {}", service, status, answer.empty() ? "" : ", ",
       Escape(answer), next);
}

HttpAnswer SendTo(const std::string& service, HttpSender& http, const HttpRequest& request,
                  std::string_view next) {
  try {
    return http.Send(request);
  } catch (const HttpFailure& failure) {
    Fail(ErrorCode::kUnavailable, "{} does not answer: {}: {}", service, failure.what, next);
  }
}

}  // namespace renzan::s3
