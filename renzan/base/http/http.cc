#include "renzan/base/http/http.h"

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
#include <utility>

#include "renzan/base/error.h"

namespace renzan {
namespace {

// A connection whose other end is gone is closed after this time: otherwise a request whose answer
// may take long would wait until its own end.
constexpr int kDeadConnectionSeconds = 30;
constexpr int kKeepAliveSeconds = 10;
constexpr int kLongestPollMs = 3'600'000;  // curl's own time limits and stops end it
constexpr long kUploadBufferBytes = 1 << 20;
constexpr long kDownloadBufferBytes = 512 << 10;  // libcurl's most
constexpr size_t kMaxIdleConnections = 64;

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

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

class CurlList {
 public:
  CurlList() = default;
  ~CurlList() { curl_slist_free_all(list_); }
  CurlList(const CurlList&) = delete;
  CurlList& operator=(const CurlList&) = delete;
  void Add(const std::string& line) {
    curl_slist* const longer = curl_slist_append(list_, line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    list_ = longer;
  }
  curl_slist* get() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

struct Transfer {
  const HttpRequest& request;
  CURL* easy;
  HttpAnswer answer = {};
  size_t sent = 0;  // of the request's body, as far as curl has taken it
  bool begun = false, lost = false;
  bool has_head = false;
  bool too_large = false;
  std::exception_ptr not_taken = {};
  CurlList headers = {}, connect_to = {};

  int Status() const {
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return static_cast<int>(status);
  }

  // Callbacks of curl. Returning anything but `count` ends the transfer.
  static size_t Take(char* data, size_t, size_t count, void* self) {
    Transfer& transfer = *static_cast<Transfer*>(self);
    HttpAnswer& answer = transfer.answer;
    const HttpRequest& request = transfer.request;
    const int status = transfer.Status();
    const bool is_data =
        request.take && (request.take_status == 0 ? status < 300 : status == request.take_status);
    if (is_data ? count > request.take_at_most - answer.taken
                : count > request.body_at_most - answer.body.size()) {
      transfer.too_large = true;
      return 0;
    }
    if (!is_data) {
      answer.body.append(data, count);
      return count;
    }
    try {
      request.take(answer.taken, std::as_bytes(std::span(data, count)));
    } catch (...) {  // exceptions must not pass through curl
      transfer.not_taken = std::current_exception();
      return 0;
    }
    answer.taken += count;
    return count;
  }
  static size_t Give(char* buffer, size_t, size_t room, void* self) {
    Transfer& transfer = *static_cast<Transfer*>(self);
    const std::string_view body = transfer.request.body;
    const size_t count = std::min(room, body.size() - transfer.sent);
    std::memcpy(buffer, body.data() + transfer.sent, count);
    transfer.sent += count;
    return count;
  }
  // If a kept connection ends before the answer, curl would silently send the request again. The
  // caller must know, because the server may have executed the first one.
  static int Begin(void* self, char*, char*, int, int) {
    Transfer& transfer = *static_cast<Transfer*>(self);
    transfer.lost = std::exchange(transfer.begun, true) && !transfer.request.repeat;
    return transfer.lost ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
  }
  // Curl calls this before it sends a body again.
  static int Rewind(void* self, curl_off_t, int) {
    static_cast<Transfer*>(self)->lost = true;
    return CURL_SEEKFUNC_FAIL;
  }
  static size_t TakeHeader(char* data, size_t, size_t count, void* self) {
    Transfer& transfer = *static_cast<Transfer*>(self);
    const std::string_view line(data, count);
    if (line.starts_with("HTTP/")) {  // again after "100 Continue"
      transfer.answer.headers.clear();
      transfer.has_head = false;
    }
    if (line == "\r\n" || line == "\n") transfer.has_head = true;
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return count;
    std::string name(line.substr(0, colon));
    for (char& c : name)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    size_t begin = colon + 1, end = line.size();
    while (begin < end && IsSpace(line[begin])) ++begin;
    while (end > begin && IsSpace(line[end - 1])) --end;
    transfer.answer.headers[name] = std::string(line.substr(begin, end - begin));
    return count;
  }
};

HttpFailure::Kind KindOf(CURLcode code) {
  switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return HttpFailure::Kind::kBadUrl;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return HttpFailure::Kind::kUnknownHost;
    case CURLE_COULDNT_CONNECT:
      return HttpFailure::Kind::kNotReached;
    case CURLE_OPERATION_TIMEDOUT:
      return HttpFailure::Kind::kTimedOut;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
      return HttpFailure::Kind::kNotTrusted;
    case CURLE_SSL_CERTPROBLEM:
      return HttpFailure::Kind::kBadClientCertificate;
    default:
      return HttpFailure::Kind::kBroken;
  }
}

// A URL with another host, and an entry for CURLOPT_CONNECT_TO that still connects to its own: curl
// then checks the certificate for that name.
struct Renamed {
  std::string url, connect_to;
};
Renamed Rename(const std::string& url, const std::string& host) {
  const size_t scheme = url.find("://");
  const size_t start = scheme == std::string::npos ? 0 : scheme + 3;
  const size_t end = std::min(url.find_first_of("/?", start), url.size());
  const std::string authority = url.substr(start, end - start);
  const size_t bracket = authority.find(']');  // of an IPv6 address, which has colons
  const size_t colon = authority.find(':', bracket == std::string::npos ? 0 : bracket);
  const std::string name = authority.substr(0, colon);
  const std::string port = colon == std::string::npos ? "" : authority.substr(colon);
  return {url.substr(0, start) + host + port + url.substr(end),
          fmt::format("::{}{}", name, port.empty() ? ":" : port)};
}

// Method, headers, body, and what becomes of the answer.
void SetUpRequest(Transfer& transfer) {
  CURL* const easy = transfer.easy;
  const HttpRequest& request = transfer.request;
  for (const auto& [name, value] : request.headers)
    transfer.headers.Add(value.empty() ? name + ";" : fmt::format("{}: {}", name, value));
  transfer.headers.Add("Expect:");  // no waiting for "100 Continue" before a body
  transfer.headers.Add("Accept:");
  if (request.method == "HEAD") {
    curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
  } else if (request.method == "PUT" || request.method == "POST" || !request.body.empty()) {
    transfer.headers.Add("Content-Type:");
    curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, &Transfer::Give);
    curl_easy_setopt(easy, CURLOPT_READDATA, &transfer);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, &Transfer::Rewind);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, &transfer);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, kUploadBufferBytes);
  }
  if (request.method != "HEAD" && request.method != "GET")
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer.headers.get());
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "renzan/" RENZAN_VERSION);
  curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, kDownloadBufferBytes);
  curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, &Transfer::Begin);
  curl_easy_setopt(easy, CURLOPT_PREREQDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Transfer::Take);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &Transfer::TakeHeader);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &transfer);
}

// Address and time limits.
void SetUpConnection(Transfer& transfer) {
  CURL* const easy = transfer.easy;
  const HttpRequest& request = transfer.request;
  if (request.server_name.empty()) {
    curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
  } else {
    const Renamed renamed = Rename(request.url, request.server_name);
    curl_easy_setopt(easy, CURLOPT_URL, renamed.url.c_str());
    transfer.connect_to.Add(renamed.connect_to);
    curl_easy_setopt(easy, CURLOPT_CONNECT_TO, transfer.connect_to.get());
  }
  curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);  // a key may hold ".."
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  // Even if it is empty: otherwise curl reads variables of the environment.
  curl_easy_setopt(easy, CURLOPT_PROXY, request.proxy_url.c_str());
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, &SetUpSocket);
  const auto milliseconds = [](double seconds) { return static_cast<long>(seconds * 1000); };
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(request.connect_timeout_seconds));
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, milliseconds(request.timeout_seconds));
  if (request.stall_seconds > 0) {
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, static_cast<long>(request.stall_seconds));
  }
  if (request.fresh_connection) {
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
  }
  if (!request.unix_socket.empty())
    curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, request.unix_socket.c_str());
}

void SetUpTls(Transfer& transfer) {
  const HttpRequest& request = transfer.request;
  const auto set_pem = [&](CURLoption option, std::string_view pem) {
    // NOLINTNEXTLINE: libcurl only reads it
    curl_blob blob{
        .data = const_cast<char*>(pem.data()), .len = pem.size(), .flags = CURL_BLOB_NOCOPY};
    if (!pem.empty()) curl_easy_setopt(transfer.easy, option, &blob);
  };
  set_pem(CURLOPT_CAINFO_BLOB, request.ca_pem);
  // Curl uses neither a connection nor a TLS session that was begun with another certificate.
  set_pem(CURLOPT_SSLCERT_BLOB, request.client_certificate_pem);
  set_pem(CURLOPT_SSLKEY_BLOB, request.client_key_pem);
  const bool pinned = !request.pinned_key.empty();
  if (pinned) {
    // Nothing else vouches for the server.
    const CURLcode set =
        curl_easy_setopt(transfer.easy, CURLOPT_PINNEDPUBLICKEY, request.pinned_key.c_str());
    if (set != CURLE_OK)
      throw HttpFailure{
          .kind = HttpFailure::Kind::kNotTrusted,
          .what = fmt::format("libcurl cannot check keys: {}", curl_easy_strerror(set))};
    curl_easy_setopt(transfer.easy, CURLOPT_PROTOCOLS_STR, "https");
  }
  const bool verify = request.verify_server && !pinned;
  curl_easy_setopt(transfer.easy, CURLOPT_SSL_VERIFYPEER, verify ? 1L : 0L);
  curl_easy_setopt(transfer.easy, CURLOPT_SSL_VERIFYHOST, verify ? 2L : 0L);
  curl_easy_setopt(transfer.easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
}

[[noreturn]] void FailTransfer(const Transfer& transfer, CURLcode code, const char* error) {
  HttpFailure failure{.kind = KindOf(code),
                      .what = error[0] != '\0' ? error : curl_easy_strerror(code),
                      .sent_body = transfer.sent == transfer.request.body.size()};
  long os_error = 0, certificate = 0;
  curl_easy_getinfo(transfer.easy, CURLINFO_OS_ERRNO, &os_error);
  curl_easy_getinfo(transfer.easy, CURLINFO_SSL_VERIFYRESULT, &certificate);
  failure.os_error = static_cast<int>(os_error);
  failure.not_valid_now =
      code == CURLE_PEER_FAILED_VERIFICATION &&
      (certificate == X509_V_ERR_CERT_HAS_EXPIRED || certificate == X509_V_ERR_CERT_NOT_YET_VALID);
  if (transfer.lost) failure.what = "the server closed the connection without an answer";
  if (transfer.too_large) {
    failure.kind = HttpFailure::Kind::kTooLarge;
    failure.what = "the answer is longer than what was asked for";
  }
  if (transfer.request.stop.stop_requested()) failure.kind = HttpFailure::Kind::kStopped;
  throw failure;
}

}  // namespace

std::string HttpAnswer::Header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

struct Http::Connection {
  CURL* easy = curl_easy_init();
  CURLM* multi = curl_multi_init();
  char error[CURL_ERROR_SIZE] = "";

  Connection() = default;
  ~Connection() {
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Performs the prepared transfer. Unlike curl_easy_perform(), a stop ends it at once.
  CURLcode Run(const std::stop_token& stop) const {
    if (curl_multi_add_handle(multi, easy) != CURLM_OK) throw std::bad_alloc();
    CURLcode code = CURLE_ABORTED_BY_CALLBACK;
    {
      const std::stop_callback wake(stop, [this] { curl_multi_wakeup(multi); });
      for (int running = 1; !stop.stop_requested();) {
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
    curl_multi_remove_handle(multi, easy);
    return code;
  }
};

Http::Http(std::string ca_bundle) : ca_bundle_(std::move(ca_bundle)) { StartCurl(); }

Http::~Http() = default;

std::unique_ptr<Http::Connection> Http::Take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Connection> connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  auto connection = std::make_unique<Connection>();
  if (connection->easy == nullptr || connection->multi == nullptr)
    Fail(ErrorCode::kOsError, "cannot initialize libcurl");
  return connection;
}

void Http::GiveBack(std::unique_ptr<Connection> connection) {
  const std::lock_guard lock(mutex_);
  if (idle_.size() < kMaxIdleConnections) idle_.push_back(std::move(connection));
}

HttpAnswer Http::Send(const HttpRequest& request) {
  std::unique_ptr<Connection> connection = Take();
  CURL* const easy = connection->easy;
  curl_easy_reset(easy);
  connection->error[0] = '\0';
  Transfer transfer{.request = request, .easy = easy};
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, connection->error);
  if (!ca_bundle_.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, ca_bundle_.c_str());
  SetUpRequest(transfer);
  SetUpConnection(transfer);
  SetUpTls(transfer);
  const CURLcode code = connection->Run(request.stop);
  if (transfer.not_taken) std::rethrow_exception(transfer.not_taken);
  // After a failure, the connection goes, too.
  if (code != CURLE_OK) FailTransfer(transfer, code, connection->error);
  // Curl takes an answer cut off in its head for one without a body.
  if (!transfer.has_head)
    throw HttpFailure{.kind = HttpFailure::Kind::kBroken,
                      .what = "the answer ends in its headers",
                      .sent_body = transfer.sent == request.body.size()};
  transfer.answer.status = transfer.Status();
  if (transfer.answer.headers.contains("retry-after")) {
    curl_off_t seconds = 0;
    curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds);
    transfer.answer.retry_after_seconds = static_cast<double>(seconds);
  }
  GiveBack(std::move(connection));
  return std::move(transfer.answer);
}

}  // namespace renzan
