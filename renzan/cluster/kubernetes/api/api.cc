#include "renzan/cluster/kubernetes/api/api.h"

namespace renzan::cluster::kubernetes {
namespace {

ErrorCode CodeOf(int http_status) {
  switch (http_status) {
    case 401:
    case 403:
      return ErrorCode::kNoPermission;
    case 404:
      return ErrorCode::kNoInput;
    case 409:
    case 410:
      return ErrorCode::kTempFail;
    default:
      return http_status >= 400 && http_status < 500 && http_status != 429
                 ? ErrorCode::kData
                 : ErrorCode::kUnavailable;
  }
}

}  // namespace

std::string ApiVersion(const Kind& kind) {
  return kind.group.empty() ? kind.version : kind.group + "/" + kind.version;
}

ApiError::ApiError(int http_status, std::string reason, const std::string& message,
                   bool maybe_executed)
    : ApiError(CodeOf(http_status), http_status, std::move(reason), message, maybe_executed) {}

ApiError::ApiError(ErrorCode code, int http_status, std::string reason, const std::string& message,
                   bool maybe_executed)
    : Error(code, message),
      http_status_(http_status),
      reason_(std::move(reason)),
      maybe_executed_(maybe_executed) {}

}  // namespace renzan::cluster::kubernetes
