#include "renzan/base/http/http.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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

constexpr long kConnectTimeoutMs = 5000;
// After this time without an acknowledgement, a connection is broken.
constexpr int kUnacknowledgedMs = 20'000;
constexpr long kUploadBufferBytes = 1 << 20;
constexpr long kDownloadBufferBytes = 512 << 10;  // libcurl's most
constexpr size_t kMaxIdleConnections = 64;
// The longest answer that is not an object's data (lists, errors).
constexpr size_t kMaxBodyBytes = 256u << 20;

void StartCurl() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
      Fail(ErrorCode::kOsError, "cannot initialize libcurl");
  });
}

int SetUpSocket(void*, curl_socket_t socket, curlsocktype) {
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnacknowledgedMs, sizeof kUnacknowledgedMs);
  return CURL_SOCKOPT_OK;
}

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

struct Transfer {
  const HttpRequest& request;
  CURL* easy;
  HttpAnswer answer = {};
  size_t sent = 0;
  bool begun = false, lost = false;
  bool has_head = false;
  bool too_large = false;
  std::exception_ptr not_taken = {};

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
    const bool is_data = request.take && transfer.Status() == request.take_status;
    if (is_data ? count > request.take_at_most - answer.taken
                : count > kMaxBodyBytes - answer.body.size()) {
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
    transfer.lost = std::exchange(transfer.begun, true);
    return transfer.lost ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
  }
  // Curl calls this before it sends again.
  static int Rewind(void* self, curl_off_t offset, int) {
    static_cast<Transfer*>(self)->sent = static_cast<size_t>(offset);
    return CURL_SEEKFUNC_OK;
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
      return HttpFailure::Kind::kUnknownHost;
    case CURLE_COULDNT_CONNECT:
      return HttpFailure::Kind::kNotReached;
    case CURLE_OPERATION_TIMEDOUT:
      return HttpFailure::Kind::kTimedOut;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
      return HttpFailure::Kind::kNotTrusted;
    default:
      return HttpFailure::Kind::kBroken;
  }
}

class HeaderList {
 public:
  HeaderList() = default;
  ~HeaderList() { curl_slist_free_all(list_); }
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  void Add(const std::string& line) {
    curl_slist* const longer = curl_slist_append(list_, line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    list_ = longer;
  }
  curl_slist* get() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

}  // namespace

std::string HttpAnswer::Header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

struct Http::Connection {
  CURL* easy = curl_easy_init();
  char error[CURL_ERROR_SIZE] = "";

  Connection() {
    if (easy == nullptr) Fail(ErrorCode::kOsError, "cannot initialize libcurl");
  }
  ~Connection() { curl_easy_cleanup(easy); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
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
  return std::make_unique<Connection>();
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
  HeaderList headers;
  for (const auto& [name, value] : request.headers)
    headers.Add(value.empty() ? name + ";" : fmt::format("{}: {}", name, value));
  headers.Add("Expect:");  // no waiting for "100 Continue" before a body
  headers.Add("Accept:");
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, connection->error);
  curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);  // a key may hold ".."
  if (request.method == "HEAD") {
    curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
  } else if (request.method == "PUT" || request.method == "POST") {
    headers.Add("Content-Type:");
    curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, &Transfer::Give);
    curl_easy_setopt(easy, CURLOPT_READDATA, &transfer);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, &Transfer::Rewind);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, &transfer);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, kUploadBufferBytes);
  } else if (request.method != "GET") {
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(easy, CURLOPT_PROXY, "");  // proxy variables of the environment are ignored
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, &SetUpSocket);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout_seconds * 1000));
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
  if (!request.pinned_key.empty()) {
    curl_easy_setopt(easy, CURLOPT_PINNEDPUBLICKEY, request.pinned_key.c_str());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https");
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, kDownloadBufferBytes);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "renzan/" RENZAN_VERSION);
  curl_easy_setopt(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!ca_bundle_.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, ca_bundle_.c_str());
  curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, &Transfer::Begin);
  curl_easy_setopt(easy, CURLOPT_PREREQDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Transfer::Take);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &Transfer::TakeHeader);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &transfer);
  const CURLcode code = curl_easy_perform(easy);
  if (transfer.not_taken) std::rethrow_exception(transfer.not_taken);
  if (code != CURLE_OK) {
    const std::string detail = transfer.too_large ? "the answer is longer than what was asked for"
                               : transfer.lost
                                   ? "the server closed the connection without an answer"
                               : connection->error[0] != '\0' ? connection->error
                                                              : curl_easy_strerror(code);
    long os_error = 0;
    curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &os_error);
    // The connection goes with it.
    throw HttpFailure{.kind = KindOf(code), .what = detail, .os_error = static_cast<int>(os_error)};
  }
  // Curl takes an answer cut off in its head for one without a body.
  if (!transfer.has_head)
    throw HttpFailure{.kind = HttpFailure::Kind::kBroken, .what = "the answer ends in its headers"};
  transfer.answer.status = transfer.Status();
  GiveBack(std::move(connection));
  return std::move(transfer.answer);
}

}  // namespace renzan
