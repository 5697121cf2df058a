#include "renzan/cluster/kubernetes/api/session.h"

#include <limits>

#include "renzan/base/error.h"
#include "renzan/cluster/kubernetes/api/api.h"

namespace renzan::cluster::kubernetes {
namespace {

// Why there is no answer.
struct Reason {
  ErrorCode code;
  const char* name;
  std::string message;
  std::string next = {};  // empty: it depends on whether the request may have been executed
};

Reason Explain(const HttpFailure& failure, const std::string& from) {
  const std::string& detail = failure.what;
  switch (failure.kind) {
    case HttpFailure::Kind::kUnknownHost:
    case HttpFailure::Kind::kNotReached:
      return {ErrorCode::kUnavailable, "NotReached",
              fmt::format("cannot reach the API server ({})", detail),
              "is it running, and is the address in " + from + " right?"};
    case HttpFailure::Kind::kNotTrusted:
      if (failure.not_valid_now)
        return {ErrorCode::kConfig, "NotTrusted",
                fmt::format("the server's certificate is not valid now ({})", detail),
                "have it renewed on the server, or set correct this machine's clock"};
      return {ErrorCode::kConfig, "NotTrusted",
              fmt::format("the server's certificate is not trusted ({})", detail),
              "check certificate-authority and tls-server-name of " + from};
    case HttpFailure::Kind::kBadClientCertificate:
      return {ErrorCode::kConfig, "BadCertificate",
              fmt::format("the client certificate cannot be used ({})", detail),
              "get new credentials for " + from};
    case HttpFailure::Kind::kBadUrl:
      return {ErrorCode::kConfig, "BadAddress", fmt::format("not an address ({})", detail),
              "correct it in " + from};
    case HttpFailure::Kind::kTimedOut:
      return {ErrorCode::kUnavailable, "Timeout", fmt::format("no answer in time ({})", detail)};
    case HttpFailure::Kind::kTooLarge:
      return {ErrorCode::kUnavailable, "TooLarge", "the answer is too large",
              "is it an API server? Check the address in " + from};
    case HttpFailure::Kind::kStopped:
    case HttpFailure::Kind::kBroken:
      break;
  }
  return {ErrorCode::kUnavailable, "Disconnected",
          fmt::format("the connection broke before the answer was complete ({})", detail)};
}

}  // namespace

Session::Session(const Access& access, double connect_timeout_seconds, size_t max_body_bytes,
                 std::stop_token stop)
    : access_(access),
      connect_timeout_seconds_(connect_timeout_seconds),
      max_body_bytes_(max_body_bytes),
      stop_(std::move(stop)) {}

std::string Session::Describe(const ApiRequest& request) const {
  return fmt::format("{} {}{}", request.method, access_.server,
                     request.target.substr(0, request.target.find('?')));
}

HttpAnswer Session::Send(const ApiRequest& request) {
  if (stop_.stop_requested()) FailTransfer(request, {.kind = HttpFailure::Kind::kStopped});
  if (access_.credentials) credential_ = access_.credentials->Get(stop_);
  const bool renewed = credential_ && !credential_->client_certificate_pem.empty();
  HttpRequest http{.method = request.method,
                   .url = access_.server + request.target,
                   .headers = {{"Accept", "application/json"}},
                   .body = request.body,
                   .take_status = 0,
                   .take_at_most = std::numeric_limits<uint64_t>::max(),
                   .body_at_most = max_body_bytes_,
                   .connect_timeout_seconds = connect_timeout_seconds_,
                   .timeout_seconds = request.timeout_seconds,
                   .stall_seconds = 0,  // nothing may happen on a watch for minutes
                   .stop = stop_,
                   .repeat = true,
                   .proxy_url = access_.proxy_url,
                   .ca_pem = access_.ca_pem,
                   .client_certificate_pem = renewed ? credential_->client_certificate_pem
                                                     : access_.client_certificate_pem,
                   .client_key_pem = renewed ? credential_->client_key_pem : access_.client_key_pem,
                   .server_name = access_.tls_server_name,
                   .verify_server = access_.verify_server};
  const std::string& token = credential_ ? credential_->token : access_.token;
  if (!token.empty()) http.headers.emplace_back("Authorization", "Bearer " + token);
  if (request.is_write()) http.headers.emplace_back("Content-Type", request.content_type);
  if (request.take)
    http.take = [&](uint64_t, std::span<const std::byte> bytes) {
      request.take({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    };
  try {
    return http_.Send(http);
  } catch (const HttpFailure& failure) {
    FailTransfer(request, failure);
  }
}

bool Session::RenewCredentials() {
  return credential_ && access_.credentials->Renew(credential_, stop_);
}

void Session::FailTransfer(const ApiRequest& request, const HttpFailure& failure) const {
  // The server executes nothing before it has the whole body.
  const bool maybe_executed = request.is_write() && failure.sent_body;
  if (failure.kind == HttpFailure::Kind::kStopped)
    throw ApiError(ErrorCode::kTempFail, 0, "Stopped",
                   fmt::format("{}: stopped before an answer came", Describe(request)),
                   maybe_executed);
  const Reason reason = Explain(failure, access_.from);
  const char* const next = !reason.next.empty() ? reason.next.c_str()
                           : maybe_executed     ? "it may have been done: read the object again"
                                                : "try again, or look at the API server's log";
  throw ApiError(reason.code, 0, reason.name,
                 fmt::format("{}: {}: {}", Describe(request), reason.message, next),
                 maybe_executed);
}

}  // namespace renzan::cluster::kubernetes
