#include "renzan/storage/s3/explain.h"

#include <cerrno>
#include <cmath>

#include "renzan/base/clock.h"
#include "renzan/base/escape.h"

namespace renzan::s3 {
namespace {

std::string Where(const Refused& request, const Settings& settings) {
  return fmt::format("{} {} at {}", request.method, request.location.Path(), settings.endpoint);
}

// The store's own words, for messages.
std::string Said(const HttpAnswer& answer, const ErrorAnswer& error) {
  if (error.code.empty()) return fmt::format("HTTP status {}", answer.status);
  return Escape(error.message.empty() ? error.code
                                      : fmt::format("{}: {}", error.code, error.message));
}

// Stores allow 15 minutes.
constexpr double kGoodClockSeconds = 5 * 60;

// Answers to HEAD have no error code, but carry the server's time.
bool MayBeTheClock(const HttpAnswer& answer, const std::string& code, double now_unix_seconds) {
  if (!RefusesCredentials(answer.status, code) || !code.empty()) return false;
  const std::optional<double> date = ParseHttpDate(answer.Header("date"));
  return date && std::abs(*date - now_unix_seconds) > kGoodClockSeconds;
}

}  // namespace

bool IsTransient(int status, const std::string& code) {
  return status == 408 || status == 429 || (status >= 500 && status != 501 && status != 507) ||
         code == "RequestTimeout" || code == "ConditionalRequestConflict" || code == "SlowDown" ||
         code == "OperationAborted";
}

bool RefusesCredentials(int status, const std::string& code) {
  // An answer to HEAD has no code.
  return (status == 400 || status == 401 || status == 403) &&
         (code.empty() || code == "ExpiredToken" || code == "InvalidToken" ||
          code == "TokenRefreshRequired" || code == "InvalidAccessKeyId" ||
          code == "SignatureDoesNotMatch");
}

Error Explain(const Refused& request, const HttpAnswer& answer, const Settings& settings) {
  const ErrorAnswer error = ParseError(answer.body);
  const std::string where = Where(request, settings), said = Said(answer, error);
  const std::string& code = error.code;
  const std::string region =
      error.region.empty() ? answer.Header("x-amz-bucket-region") : error.region;
  const auto make = [&](ErrorCode kind, const std::string& next, int errno_value = 0) {
    return Error(kind, fmt::format("{}: {}; {}", where, said, next), errno_value);
  };
  if (code == "NoSuchBucket")
    return make(ErrorCode::kNoInput,
                fmt::format("create the bucket '{}', or correct its name or AWS_ENDPOINT_URL",
                            request.location.bucket));
  if (code == "RequestTimeTooSkewed" || code == "RequestExpired" ||
      MayBeTheClock(answer, code, request.now_unix_seconds)) {
    const std::string& date = error.server_time.empty() ? answer.Header("date") : error.server_time;
    return make(ErrorCode::kConfig,
                fmt::format("this machine's clock says {}{}: correct it (with NTP)",
                            FormatUtc(request.now_unix_seconds),
                            date.empty() ? "" : fmt::format(", the store's {}", Escape(date))));
  }
  if (!region.empty() && region != settings.region &&
      (answer.status == 301 || answer.status == 307 || answer.status == 400))
    return make(ErrorCode::kConfig,
                fmt::format("the bucket is in the region {}, and these settings say {}: set "
                            "AWS_REGION={}",
                            Escape(region), settings.region, Escape(region)));
  if (answer.status == 301 || answer.status == 307)
    return make(ErrorCode::kConfig,
                "the bucket is in another region or at another endpoint: set AWS_REGION or "
                "AWS_ENDPOINT_URL");
  if (code == "SignatureDoesNotMatch")
    return make(ErrorCode::kNoPermission,
                fmt::format("the secret key of {} is wrong, or a proxy changes requests",
                            request.credentials_origin));
  if (code == "InvalidAccessKeyId" || code == "InvalidToken")
    return make(ErrorCode::kNoPermission,
                fmt::format("the store does not know the credentials of {}: correct them",
                            request.credentials_origin));
  if (code == "ExpiredToken" || code == "TokenRefreshRequired")
    return make(
        ErrorCode::kNoPermission,
        fmt::format("the credentials of {} have expired: renew them", request.credentials_origin));
  if (answer.status == 507 || code == "QuotaExceeded")
    return make(ErrorCode::kIo, "make room in the store");
  if (answer.status == 401 || answer.status == 403)
    return make(
        ErrorCode::kNoPermission,
        fmt::format(
            "the credentials of {} {} it{}: datasets need read permission below this prefix; "
            "imports and checkpoints also need to list, write, delete and abort uploads",
            request.credentials_origin,
            // Answers to HEAD do not say which.
            code.empty() ? "are wrong, or do not allow" : "do not allow",
            answer.status == 403 && request.method == "GET" && !request.location.key.empty()
                ? ", or it is not there (who may not list is not told)"
                : ""));
  if (code == "InvalidBucketName" || code == "KeyTooLongError" || code == "InvalidURI")
    return make(ErrorCode::kConfig, "choose another name");
  if (code == "NoSuchUpload")
    return make(ErrorCode::kIo,
                "this upload was aborted, perhaps by a lifecycle rule of the bucket: try again");
  if (code == "InvalidPart")
    return make(ErrorCode::kIo, "the store has lost a part of this upload: try again");
  if (answer.status == 404) return make(ErrorCode::kNoInput, "check the path", ENOENT);
  if (answer.status == 501 || code == "NotImplemented")
    return make(ErrorCode::kConfig, "this store lacks a required operation: use another one");
  return make(ErrorCode::kIo, "try again, or look at the store's log");
}

}  // namespace renzan::s3
