#include "renzan/cluster/client/client.h"

#include <cerrno>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/file_lock.h"
#include "renzan/cluster/client/credential.h"
#include "renzan/cluster/client/paths.h"

namespace renzan::cluster::client {
namespace {

bool IsErrorCode(int code) {
  switch (static_cast<ErrorCode>(code)) {
    case ErrorCode::kUsage:
    case ErrorCode::kData:
    case ErrorCode::kNoInput:
    case ErrorCode::kUnavailable:
    case ErrorCode::kSoftware:
    case ErrorCode::kOsError:
    case ErrorCode::kCantCreate:
    case ErrorCode::kIo:
    case ErrorCode::kTempFail:
    case ErrorCode::kNoPermission:
    case ErrorCode::kConfig:
      return true;
  }
  return false;
}

// Throws the error in the response: {"error": {"code": 78, "message": "..."}}.
[[noreturn]] void FailAsResponded(const std::string& socket, int status, const std::string& body) {
  const nlohmann::json json = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && json.contains("error") && json["error"].is_object()) {
    const nlohmann::json& error = json["error"];
    const auto code = error.find("code"), message = error.find("message");
    if (code != error.end() && code->is_number_integer() && IsErrorCode(code->get<int>()) &&
        message != error.end() && message->is_string())
      throw Error(static_cast<ErrorCode>(code->get<int>()), message->get<std::string>());
  }
  Fail(ErrorCode::kUnavailable,
       "{} responded with HTTP status {} and without an error of renzan: is it a renzan daemon?",
       socket, status);
}

[[noreturn]] void FailAddress(const std::string& address) {
  Fail(ErrorCode::kUsage,
       "{}: invalid address: expected https://HOST:PORT (--socket, RENZAN_SOCKET)", address);
}

// "pid 123" of the daemon in whose state directory the socket is, or was; "" if there is none.
std::string OwnerOf(const std::string& socket) {
  if (IsUrl(socket)) return "";
  const std::string lock = std::filesystem::path(socket).parent_path() / "lock";
  try {
    return FileExists(lock) && FileLock::IsHeld(lock) ? FileLock::OwnerOf(lock) : "";
  } catch (const Error&) {
    return "";  // of another user
  }
}

}  // namespace

Client::Client(Endpoint endpoint, double timeout_seconds)
    : endpoint_(std::move(endpoint)), timeout_seconds_(timeout_seconds) {
  if (IsUrl(socket())) {
    if (!IsTcpAddress(socket()) || socket().ends_with("://")) FailAddress(socket());
    if (socket().back() == '/') endpoint_.socket.pop_back();  // as in a copied URL
  } else {
    CheckSocketPath(socket());
  }
}

std::string Client::Get(const std::string& target) {
  return Send({.method = "GET", .timeout_seconds = timeout_seconds_}, target).body;
}

std::string Client::Post(const std::string& target, const std::string& json_body) {
  return Send({.method = "POST",
               .headers = {{"Content-Type", "application/json"}},
               .body = json_body,
               .timeout_seconds = timeout_seconds_},
              target)
      .body;
}

void Client::Stream(const std::string& target, const std::function<void(std::string_view)>& take) {
  const auto take_bytes = [&](uint64_t, std::span<const std::byte> bytes) {
    take({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  };
  Send({.method = "GET",
        .take = take_bytes,
        .take_status = 200,
        .take_at_most = std::numeric_limits<uint64_t>::max(),
        .timeout_seconds = 0},
       target);
}

HttpAnswer Client::Send(HttpRequest request, const std::string& target) {
  const bool tcp = IsUrl(socket());
  request.url = (tcp ? socket() : "http://localhost") + target;
  request.stall_seconds = 0;  // a followed log may be silent for long
  request.fresh_connection = true;
  if (tcp) {
    const Credential credential = ReadCredential(endpoint_.token_file);
    request.pinned_key = credential.pin;
    request.headers.emplace_back("Authorization", "Bearer " + credential.token);
  } else {
    request.unix_socket = socket();
  }
  try {
    HttpAnswer answer = http_.Send(request);
    if (answer.status >= 400) FailAsResponded(socket(), answer.status, answer.body);
    return answer;
  } catch (const HttpFailure& failure) {
    FailTransfer(failure, request.method == "POST");
  }
}

void Client::FailInSpiteOf(const std::string& owner) const {
  if (FileExists(socket()))
    Fail(ErrorCode::kUnavailable,
         "the daemon at {} ({}) takes no connection now: it has too many clients, is starting, or "
         "is ending: try again",
         socket(), owner);
  Fail(ErrorCode::kUnavailable,
       "no daemon at {}, although one is running ({}): it is starting, or its socket was removed. "
       "Try again; if that does not help, end it with `kill` and this number, which does not touch "
       "its jobs, and start it with `renzan cluster up`",
       socket(), owner);
}

void Client::FailTransfer(const HttpFailure& failure, bool writes) const {
  // The daemon may have executed a request whose response was lost.
  const char* const next = writes ? "check with `renzan jobs` whether it was done"
                                  : "try again, or see daemon.log in its state directory";
  switch (failure.kind) {
    case HttpFailure::Kind::kBadUrl:
      FailAddress(socket());
    case HttpFailure::Kind::kUnknownHost:
      Fail(ErrorCode::kUnavailable, "{}: unknown host: check --socket and RENZAN_SOCKET", socket());
    case HttpFailure::Kind::kNotReached:
      if (failure.os_error == EACCES || failure.os_error == EPERM)
        Fail(ErrorCode::kNoPermission,
             "{}: permission denied: the daemon belongs to another user; start your own with "
             "`renzan cluster up`, or ask its owner for access",
             socket());
      if (const std::string owner = OwnerOf(socket()); !owner.empty()) FailInSpiteOf(owner);
      Fail(ErrorCode::kUnavailable, "no daemon at {}: start one with `renzan cluster up`",
           socket());
    case HttpFailure::Kind::kTimedOut:
      Fail(ErrorCode::kUnavailable, "the daemon at {} did not respond within {} s: {}", socket(),
           timeout_seconds_, next);
    case HttpFailure::Kind::kNotTrusted:
      Fail(ErrorCode::kNoPermission,
           "{} has another key than the daemon that {} is for, so the token was not sent: check "
           "the address; if the daemon's key was replaced, ask its operator for a new token "
           "(`renzan cluster token create`)",
           socket(), endpoint_.token_file);
    case HttpFailure::Kind::kBadClientCertificate:
    case HttpFailure::Kind::kBroken:
    case HttpFailure::Kind::kTooLarge:
    case HttpFailure::Kind::kStopped:
      break;
  }
  Fail(ErrorCode::kUnavailable, "the daemon at {} disconnected before it responded ({}): {}",
       socket(), failure.what, next);
}

std::string EscapeUrl(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    escaped += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return escaped;
}

}  // namespace renzan::cluster::client
