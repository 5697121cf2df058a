#include "renzan/cluster/kubernetes/api/http_session.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/x509_vfy.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>

#include "renzan/base/error.h"
#include "renzan/cluster/kubernetes/api/api.h"

namespace renzan::cluster::kubernetes {
namespace {

// A connection whose other end is gone is closed after this time: otherwise a watch, on which
// nothing may happen for minutes, would wait until its own end.
constexpr int kDeadConnectionSeconds = 30;
constexpr int kKeepAliveSeconds = 10;

void StartCurl() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
      Fail(ErrorCode::kOsError, "cannot initialize libcurl");
  });
}

int SetUpSocket(void*, curl_socket_t socket, curlsocktype) {
  const auto set = [socket](int level, int option, int value) {
    ::setsockopt(socket, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kDeadConnectionSeconds / kKeepAliveSeconds);
  // The same for sent data that is not acknowledged.
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, kDeadConnectionSeconds * 1000);
  return CURL_SOCKOPT_OK;
}

using CurlList = std::unique_ptr<curl_slist, void (*)(curl_slist*)>;

void Append(CurlList& list, const std::string& line) {
  curl_slist* const all = curl_slist_append(list.get(), line.c_str());
  if (all == nullptr) throw std::bad_alloc();
  list.release();
  list.reset(all);
}

// A server's address with another host name, and an entry for CURLOPT_CONNECT_TO that still
// connects to the server: curl then checks the certificate for that name.
struct Renamed {
  std::string server, connect_to;
};
Renamed Rename(const std::string& server, const std::string& host) {
  const size_t start = server.find("://") + 3;
  const size_t end = std::min(server.find('/', start), server.size());
  const std::string authority = server.substr(start, end - start);
  const size_t bracket = authority.find(']');  // of an IPv6 address, which has colons
  const size_t colon = authority.find(':', bracket == std::string::npos ? 0 : bracket);
  const std::string name = authority.substr(0, std::min(colon, authority.size()));
  const std::string port = colon == std::string::npos ? "" : authority.substr(colon);
  return {server.substr(0, start) + host + port + server.substr(end),
          fmt::format("::{}{}", name, port.empty() ? ":" : port)};
}

// Why there is no answer.
struct Failure {
  ErrorCode code;
  const char* reason;
  std::string message;
  std::string next = {};  // empty: it depends on whether the request may have been executed
};

// `certificate`: what is wrong with the server's, for X509_verify_cert_error_string().
Failure Explain(int curl_code, bool too_large, long certificate, const char* error,
                const std::string& from) {
  const std::string detail =
      error[0] != '\0' ? error : curl_easy_strerror(static_cast<CURLcode>(curl_code));
  if (too_large)
    return {ErrorCode::kUnavailable, "TooLarge", "the answer is too large",
            "is it an API server? Check the address in " + from};
  switch (curl_code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
      return {ErrorCode::kUnavailable, "NotReached",
              fmt::format("cannot reach the API server ({})", detail),
              "is it running, and is the address in " + from + " right?"};
    case CURLE_PEER_FAILED_VERIFICATION:
      if (certificate == X509_V_ERR_CERT_HAS_EXPIRED ||
          certificate == X509_V_ERR_CERT_NOT_YET_VALID)
        return {ErrorCode::kConfig, "NotTrusted",
                fmt::format("the server's certificate is not valid now ({})", detail),
                "have it renewed on the server, or set correct this machine's clock"};
      [[fallthrough]];
    case CURLE_SSL_CACERT_BADFILE:
      return {ErrorCode::kConfig, "NotTrusted",
              fmt::format("the server's certificate is not trusted ({})", detail),
              "check certificate-authority and tls-server-name of " + from};
    case CURLE_SSL_CERTPROBLEM:
      return {ErrorCode::kConfig, "BadCertificate",
              fmt::format("the client certificate cannot be used ({})", detail),
              "get new credentials for " + from};
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return {ErrorCode::kConfig, "BadAddress", fmt::format("not an address ({})", detail),
              "correct it in " + from};
    case CURLE_OPERATION_TIMEDOUT:
      return {ErrorCode::kUnavailable, "Timeout", fmt::format("no answer in time ({})", detail)};
    default:
      return {ErrorCode::kUnavailable, "Disconnected",
              fmt::format("the connection broke before the answer was complete ({})", detail)};
  }
}

}  // namespace

struct HttpSession::Handles {
  CURL* easy = nullptr;
  CURLM* multi = nullptr;
  char error[CURL_ERROR_SIZE] = "";

  Handles() {
    StartCurl();
    easy = curl_easy_init();
    multi = curl_multi_init();
    if (easy == nullptr || multi == nullptr) Fail(ErrorCode::kOsError, "cannot initialize libcurl");
  }
  ~Handles() {
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
  }
};

struct HttpSession::Transfer {
  CURL* easy;
  const HttpRequest& request;
  size_t max_body_bytes;
  HttpAnswer answer = {};
  size_t sent = 0;  // of the request's body, as far as libcurl has taken it
  bool too_large = false;
  std::exception_ptr thrown = {};
  CurlList headers{nullptr, curl_slist_free_all};
  CurlList connect_to{nullptr, curl_slist_free_all};

  bool is_write() const { return request.method != "GET"; }
  // The server executes nothing before it has the whole body.
  bool maybe_executed() const { return is_write() && sent == request.body.size(); }

  int status() const {
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return static_cast<int>(status);
  }

  void Header(const std::string& line) { Append(headers, line); }

  // Callbacks of curl. Returning anything but `count` ends the transfer.
  static size_t Take(char* data, size_t, size_t count, void* self) {
    Transfer& transfer = *static_cast<Transfer*>(self);
    try {
      if (transfer.request.take && transfer.status() < 300) {
        transfer.request.take({data, count});
      } else if (transfer.answer.body.size() + count > transfer.max_body_bytes) {
        transfer.too_large = true;
        return 0;
      } else {
        transfer.answer.body.append(data, count);
      }
    } catch (...) {
      transfer.thrown = std::current_exception();
      return 0;
    }
    return count;
  }
  static size_t Give(char* buffer, size_t, size_t room, void* self) {
    Transfer& transfer = *static_cast<Transfer*>(self);
    const std::string& body = transfer.request.body;
    const size_t count = std::min(room, body.size() - transfer.sent);
    std::memcpy(buffer, body.data() + transfer.sent, count);
    transfer.sent += count;
    return count;
  }
  // If a reused connection breaks, curl would send the request again, perhaps executing it twice.
  static int RefuseRewind(void*, curl_off_t, int) { return CURL_SEEKFUNC_FAIL; }
};

HttpSession::HttpSession(const Access& access, double connect_timeout_seconds,
                         size_t max_body_bytes, std::stop_token stop)
    : access_(access),
      connect_timeout_seconds_(connect_timeout_seconds),
      max_body_bytes_(max_body_bytes),
      stop_(std::move(stop)),
      handles_(std::make_unique<Handles>()) {}

HttpSession::~HttpSession() = default;

std::string HttpSession::Describe(const HttpRequest& request) const {
  return fmt::format("{} {}{}", request.method, access_.server,
                     request.target.substr(0, request.target.find('?')));
}

HttpAnswer HttpSession::Send(const HttpRequest& request) {
  if (stop_.stop_requested()) FailStopped(request, /*sent=*/false);
  Transfer transfer{.easy = handles_->easy, .request = request, .max_body_bytes = max_body_bytes_};
  SetUp(transfer, request);
  const int code = Run();
  if (transfer.thrown) std::rethrow_exception(transfer.thrown);
  if (code != CURLE_OK) {
    if (stop_.stop_requested()) FailStopped(request, transfer.maybe_executed());
    FailTransfer(transfer, request, code);
  }
  transfer.answer.status = transfer.status();
  curl_header* header = nullptr;
  if (curl_easy_header(transfer.easy, "Retry-After", 0, CURLH_HEADER, -1, &header) == CURLHE_OK) {
    curl_off_t seconds = 0;
    curl_easy_getinfo(transfer.easy, CURLINFO_RETRY_AFTER, &seconds);
    transfer.answer.retry_after_seconds = static_cast<double>(seconds);
  }
  return std::move(transfer.answer);
}

bool HttpSession::RenewCredentials() {
  return credential_ && access_.credentials->Renew(credential_, stop_);
}

void HttpSession::SetUp(Transfer& transfer, const HttpRequest& request) {
  CURL* const easy = handles_->easy;
  if (access_.credentials) credential_ = access_.credentials->Get(stop_);
  curl_easy_reset(easy);
  handles_->error[0] = '\0';
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, handles_->error);
  SetUpTls();
  std::string server = access_.server;
  if (!access_.tls_server_name.empty()) {
    Renamed renamed = Rename(server, access_.tls_server_name);
    server = std::move(renamed.server);
    Append(transfer.connect_to, renamed.connect_to);
    curl_easy_setopt(easy, CURLOPT_CONNECT_TO, transfer.connect_to.get());
  }
  curl_easy_setopt(easy, CURLOPT_URL, (server + request.target).c_str());
  const std::string& token = credential_ ? credential_->token : access_.token;
  if (!token.empty()) transfer.Header("Authorization: Bearer " + token);
  transfer.Header("Accept: application/json");
  if (transfer.is_write()) {
    // As an upload, whatever the method, so that RefuseRewind() is asked.
    curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, &Transfer::Give);
    curl_easy_setopt(easy, CURLOPT_READDATA, &transfer);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, &Transfer::RefuseRewind);
    transfer.Header("Content-Type: " + request.content_type);
    transfer.Header("Expect:");  // no waiting for "100 Continue" before a large body
  }
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer.headers.get());
  // Ignores the environment, as for the other requests of renzan.
  curl_easy_setopt(easy, CURLOPT_PROXY, access_.proxy_url.c_str());
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, &SetUpSocket);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(connect_timeout_seconds_ * 1000));
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout_seconds * 1000));
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "renzan/" RENZAN_VERSION);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Transfer::Take);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
}

void HttpSession::SetUpTls() {
  CURL* const easy = handles_->easy;
  const auto set_blob = [easy](CURLoption option, const std::string& pem) {
    // NOLINTNEXTLINE: libcurl only reads it
    curl_blob blob{
        .data = const_cast<char*>(pem.data()), .len = pem.size(), .flags = CURL_BLOB_NOCOPY};
    if (!pem.empty()) curl_easy_setopt(easy, option, &blob);
  };
  set_blob(CURLOPT_CAINFO_BLOB, access_.ca_pem);
  // libcurl uses neither a connection nor a TLS session that was begun with another certificate.
  const bool renewed = credential_ && !credential_->client_certificate_pem.empty();
  set_blob(CURLOPT_SSLCERT_BLOB,
           renewed ? credential_->client_certificate_pem : access_.client_certificate_pem);
  set_blob(CURLOPT_SSLKEY_BLOB, renewed ? credential_->client_key_pem : access_.client_key_pem);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, access_.verify_server ? 1L : 0L);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, access_.verify_server ? 2L : 0L);
  curl_easy_setopt(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
}

// Performs the prepared transfer. Unlike curl_easy_perform(), a stop ends it at once.
int HttpSession::Run() {
  CURLM* const multi = handles_->multi;
  if (curl_multi_add_handle(multi, handles_->easy) != CURLM_OK) throw std::bad_alloc();
  CURLcode code = CURLE_ABORTED_BY_CALLBACK;
  {
    const std::stop_callback wake(stop_, [multi] { curl_multi_wakeup(multi); });
    constexpr int kLongestPollMs = 3'600'000;  // curl's own time limits and `wake` end it
    for (int running = 1; !stop_.stop_requested();) {
      if (curl_multi_perform(multi, &running) != CURLM_OK) break;
      if (running == 0) {
        int left = 0;
        if (const CURLMsg* message = curl_multi_info_read(multi, &left))
          code = message->data.result;
        break;
      }
      curl_multi_poll(multi, nullptr, 0, kLongestPollMs, nullptr);
    }
  }
  curl_multi_remove_handle(multi, handles_->easy);
  return code;
}

void HttpSession::FailStopped(const HttpRequest& request, bool sent) const {
  throw ApiError(ErrorCode::kTempFail, 0, "Stopped",
                 fmt::format("{}: stopped before an answer came", Describe(request)), sent);
}

void HttpSession::FailTransfer(const Transfer& transfer, const HttpRequest& request, int code) {
  const bool maybe_executed = transfer.maybe_executed();
  long certificate = 0;
  curl_easy_getinfo(transfer.easy, CURLINFO_SSL_VERIFYRESULT, &certificate);
  const Failure failure =
      Explain(code, transfer.too_large, certificate, handles_->error, access_.from);
  const char* const next = !failure.next.empty() ? failure.next.c_str()
                           : maybe_executed      ? "it may have been done: read the object again"
                                                 : "try again, or look at the API server's log";
  throw ApiError(failure.code, 0, failure.reason,
                 fmt::format("{}: {}: {}", Describe(request), failure.message, next),
                 maybe_executed);
}

}  // namespace renzan::cluster::kubernetes
