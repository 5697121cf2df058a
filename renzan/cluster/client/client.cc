#include "renzan/cluster/client/client.h"

#include <curl/curl.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cluster/client/paths.h"

namespace renzan::cluster::client {
namespace {

constexpr long kConnectTimeoutMs = 5000;

void StartCurl() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
      Fail(ErrorCode::kOsError, "cannot initialize libcurl");
  });
}

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
[[noreturn]] void FailAsResponded(const std::string& socket, long status, const std::string& body) {
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
       "{}: invalid address: expected http://HOST:PORT (--socket, RENZAN_SOCKET)", address);
}

std::string ReadToken(const Endpoint& endpoint) {
  std::string token;
  try {
    token = ReadFile(endpoint.token_file);
  } catch (const Error& error) {
    Fail(ErrorCode::kNoPermission,
         "{} requires the daemon's token: {}; copy the file `token` from the daemon's state "
         "directory with mode 0600, and set RENZAN_TOKEN_FILE to the copy",
         endpoint.socket, error.what());
  }
  while (!token.empty() && token.back() == '\n') token.pop_back();
  const bool printable =
      std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (token.empty() || !printable)
    Fail(ErrorCode::kNoPermission,
         "{} does not contain a token: copy it from the daemon's state directory again",
         endpoint.token_file);
  return token;
}

}  // namespace

struct Client::Transfer {
  CURL* curl = nullptr;
  bool is_post = false;
  const std::function<void(std::string_view)>* take = nullptr;  // null: into `body`
  std::string body = {};
  std::exception_ptr thrown = {};
  std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers{nullptr, curl_slist_free_all};

  void Header(const std::string& line) {
    curl_slist* const all = curl_slist_append(headers.get(), line.c_str());
    if (all == nullptr) throw std::bad_alloc();
    headers.release();
    headers.reset(all);
  }

  long status() const {
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    return status;
  }

  // Callback of curl for a piece of the body. Returning anything but `count` ends the transfer.
  static size_t Take(char* data, size_t, size_t count, void* self) {
    Transfer& transfer = *static_cast<Transfer*>(self);
    try {
      if (transfer.take != nullptr && transfer.status() < 400) {
        (*transfer.take)({data, count});
      } else {
        transfer.body.append(data, count);
      }
    } catch (...) {
      transfer.thrown = std::current_exception();
      return 0;
    }
    return count;
  }
};

void Client::CloseCurl::operator()(void* curl) const { curl_easy_cleanup(curl); }

Client::Client(Endpoint endpoint, double timeout_seconds)
    : endpoint_(std::move(endpoint)), timeout_seconds_(timeout_seconds) {
  if (IsTcpAddress(socket())) {
    if (socket().ends_with("://")) FailAddress(socket());
    if (socket().back() == '/') endpoint_.socket.pop_back();  // as in a copied URL
  } else {
    CheckSocketPath(socket());
  }
  StartCurl();
  curl_.reset(curl_easy_init());
  if (!curl_) Fail(ErrorCode::kOsError, "cannot initialize libcurl");
}

Client::~Client() = default;

std::string Client::Get(const std::string& target) {
  Transfer transfer{.curl = curl_.get()};
  curl_easy_reset(curl_.get());
  curl_easy_setopt(curl_.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(timeout_seconds_ * 1000));
  Perform(transfer, target);
  return std::move(transfer.body);
}

std::string Client::Post(const std::string& target, const std::string& json_body) {
  Transfer transfer{.curl = curl_.get(), .is_post = true};
  curl_easy_reset(curl_.get());
  curl_easy_setopt(curl_.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(timeout_seconds_ * 1000));
  curl_easy_setopt(curl_.get(), CURLOPT_POSTFIELDSIZE_LARGE,
                   static_cast<curl_off_t>(json_body.size()));
  curl_easy_setopt(curl_.get(), CURLOPT_POSTFIELDS, json_body.data());
  // If a reused connection breaks, curl would resend the request, perhaps executing it twice.
  curl_easy_setopt(curl_.get(), CURLOPT_FRESH_CONNECT, 1L);
  transfer.Header("Content-Type: application/json");
  transfer.Header("Expect:");  // no waiting for "100 Continue" before a large body
  Perform(transfer, target);
  return std::move(transfer.body);
}

void Client::Stream(const std::string& target, const std::function<void(std::string_view)>& take) {
  Transfer transfer{.curl = curl_.get(), .take = &take};
  curl_easy_reset(curl_.get());
  Perform(transfer, target);
}

void Client::Perform(Transfer& transfer, const std::string& target) {
  CURL* const curl = curl_.get();
  const bool tcp = IsTcpAddress(socket());
  curl_easy_setopt(curl, CURLOPT_URL, ((tcp ? socket() : "http://localhost") + target).c_str());
  if (tcp) {
    transfer.Header("Authorization: Bearer " + ReadToken(endpoint_));
  } else {
    curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, socket().c_str());
  }
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, transfer.headers.get());
  curl_easy_setopt(curl, CURLOPT_PROXY,
                   "");  // ignore the environment: a proxy would see the token
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "renzan/" RENZAN_VERSION);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Transfer::Take);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  const CURLcode code = curl_easy_perform(curl);
  if (transfer.thrown) std::rethrow_exception(transfer.thrown);
  if (code != CURLE_OK) FailTransfer(transfer, code);
  if (transfer.status() >= 400) FailAsResponded(socket(), transfer.status(), transfer.body);
}

void Client::FailTransfer(const Transfer& transfer, int curl_code) {
  long os_error = 0;
  curl_easy_getinfo(transfer.curl, CURLINFO_OS_ERRNO, &os_error);
  if (curl_code == CURLE_COULDNT_CONNECT) {
    if (os_error == EACCES || os_error == EPERM)
      Fail(ErrorCode::kNoPermission,
           "{}: permission denied: the daemon belongs to another user; start your own with `renzan "
           "cluster up`, or ask its owner for access",
           socket());
    Fail(ErrorCode::kUnavailable, "no daemon at {}: start one with `renzan cluster up`", socket());
  }
  if (curl_code == CURLE_URL_MALFORMAT) FailAddress(socket());
  if (curl_code == CURLE_COULDNT_RESOLVE_HOST)
    Fail(ErrorCode::kUnavailable, "{}: unknown host: check --socket and RENZAN_SOCKET", socket());
  // The daemon may have executed a request whose response was lost.
  const char* const next = transfer.is_post ? "check with `renzan jobs` whether it was done"
                                            : "try again, or see daemon.log in its state directory";
  if (curl_code == CURLE_OPERATION_TIMEDOUT)
    Fail(ErrorCode::kUnavailable, "the daemon at {} did not respond within {} s: {}", socket(),
         timeout_seconds_, next);
  Fail(ErrorCode::kUnavailable, "the daemon at {} disconnected before it responded ({}): {}",
       socket(), curl_easy_strerror(static_cast<CURLcode>(curl_code)), next);
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
