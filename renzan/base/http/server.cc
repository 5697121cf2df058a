#include "renzan/base/http/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <microhttpd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"

namespace renzan {
namespace {

constexpr std::chrono::seconds kCutEvery(1);
constexpr size_t kStreamBlockBytes = 64 << 10;
// As GnuTLS writes it.
constexpr const char* kTlsVersions = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

using Stream = std::function<size_t(char*, size_t)>;

double Now() { return SystemClock().MonotonicSeconds(); }

int DescriptorOf(MHD_Connection* connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

// 0: no timeout.
void SetTimeout(MHD_Connection* connection, unsigned seconds) {
  MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, seconds);
}

MHD_Result AddQuery(void* query, MHD_ValueKind, const char* key, const char* value) {
  (*static_cast<std::map<std::string, std::string>*>(query))[key] = value ? value : "";
  return MHD_YES;
}

ssize_t ReadStream(void* stream, uint64_t, char* data, size_t max) {
  const size_t got = (*static_cast<Stream*>(stream))(data, max);
  return got == 0 ? MHD_CONTENT_READER_END_OF_STREAM : static_cast<ssize_t>(got);
}

void FreeStream(void* stream) { delete static_cast<Stream*>(stream); }

MHD_Response* ResponseOf(const ServerAnswer& answer) {
  if (!answer.stream)
    return MHD_create_response_from_buffer(
        answer.text.size(), const_cast<char*>(answer.text.data()), MHD_RESPMEM_MUST_COPY);
  return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kStreamBlockBytes, ReadStream,
                                           new Stream(answer.stream), FreeStream);
}

// MHD_NO: the connection is to be closed.
MHD_Result Send(MHD_Connection* connection, const ServerAnswer& answer) {
  if (answer.status == 0) return MHD_NO;
  MHD_Response* const response = ResponseOf(answer);
  if (response == nullptr) return MHD_NO;
  // While a stream waits for more, the connection is idle.
  if (answer.stream) SetTimeout(connection, 0);
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer.content_type);
  if (answer.last) MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
  const MHD_Result queued = MHD_queue_response(connection, answer.status, response);
  MHD_destroy_response(response);
  return queued;
}

}  // namespace

// What libmicrohttpd calls, in any of its threads.
class HttpServer::Served {
 public:
  Served(Options options, ServerHandlers handlers)
      : options_(std::move(options)), handlers_(std::move(handlers)) {
    // While credentials are replaced, two daemons accept connections: neither may block in
    // accept().
    if (options_.listen_fd >= 0) ::fcntl(options_.listen_fd, F_SETFL, O_NONBLOCK);
    try {
      daemon_ = Start();
    } catch (const Error&) {
      if (options_.listen_fd >= 0) ::close(options_.listen_fd);
      throw;
    }
    try {
      cutting_ = std::jthread([this](const std::stop_token& stop) { CutOffSlowOnes(stop); });
    } catch (const std::system_error&) {
      MHD_stop_daemon(daemon_);  // also closes the socket
      Fail(ErrorCode::kOsError, "cannot serve {}: out of threads or memory", options_.name);
    }
  }
  ~Served() {
    cutting_ = {};
    MHD_stop_daemon(daemon_);  // also closes the socket
  }

  bool Add(int fd) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    ::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size);
    return MHD_add_connection(daemon_, fd, reinterpret_cast<sockaddr*>(&address), size) == MHD_YES;
  }

  void Use(TlsCredentials tls) {
    std::swap(*options_.tls, tls);
    try {
      MHD_Daemon* const stopped = std::exchange(daemon_, Start());
      MHD_quiesce_daemon(stopped);  // so that it leaves the socket open
      MHD_stop_daemon(stopped);
    } catch (const Error&) {
      std::swap(*options_.tls, tls);
      throw;
    }
  }

 private:
  // A request until its answer has been sent.
  struct Exchange {
    ServerHandlers::Answer answer;
    std::optional<ServerAnswer> refusal = {};
    std::string body = {};
    size_t received = 0;  // bytes of it that count
    std::function<void()> sent = {};
  };

  static Served& Of(void* self) { return *static_cast<Served*>(self); }

  static MHD_Result Handle(void* self, MHD_Connection* connection, const char* path,
                           const char* method, const char*, const char* data, size_t* bytes,
                           void** state) {
    if (*state == nullptr) return Of(self).Begin(connection, path, method, state);
    auto& exchange = *static_cast<Exchange*>(*state);
    if (*bytes > 0) {
      Of(self).Receive(exchange, {data, *bytes});
      *bytes = 0;
      return MHD_YES;
    }
    ServerAnswer answer =
        exchange.refusal ? *exchange.refusal : exchange.answer(std::move(exchange.body));
    exchange.sent = std::move(answer.sent);
    return Send(connection, answer);
  }

  static void Completed(void* self, MHD_Connection* connection, void** state,
                        MHD_RequestTerminationCode) {
    const std::unique_ptr<Exchange> exchange(static_cast<Exchange*>(*state));
    *state = nullptr;
    if (exchange) Of(self).bodies_bytes_ -= exchange->received;
    Of(self).SetIdle(connection, Of(self).options_.limits.idle_seconds);
    {
      const std::lock_guard lock(Of(self).mutex_);
      const auto at = Of(self).since_.find(DescriptorOf(connection));
      if (at != Of(self).since_.end()) at->second = Now();
    }
    if (exchange && exchange->sent) exchange->sent();
  }

  static void Changed(void* self, MHD_Connection* connection, void**,
                      MHD_ConnectionNotificationCode what) {
    const int fd = DescriptorOf(connection);
    std::unique_lock lock(Of(self).mutex_);
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
      Of(self).since_[fd] = Now();
      return;
    }
    Of(self).since_.erase(fd);
    lock.unlock();
    Of(self).handlers_.closed(fd);
  }

  MHD_Result Begin(MHD_Connection* connection, const char* path, const char* method, void** state) {
    const char* const authorization =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    ServerRequest request{.method = method,
                          .path = path,
                          .authorization = authorization != nullptr ? authorization : "",
                          .fd = DescriptorOf(connection)};
    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, AddQuery, &request.query);
    if (options_.limits.first_headers_only) {
      const std::lock_guard lock(mutex_);
      since_.erase(request.fd);
    }
    auto exchange = std::make_unique<Exchange>();
    auto begun = handlers_.begin(request);
    if (auto* refusal = std::get_if<ServerAnswer>(&begun)) {
      if (refusal->last || refusal->status == 0) return Send(connection, *refusal);
      exchange->refusal = std::move(*refusal);
    } else {
      exchange->answer = std::move(std::get<ServerHandlers::Answer>(begun));
      SetIdle(connection, options_.limits.idle_in_request_seconds);
    }
    *state = exchange.release();
    return MHD_YES;
  }

  void SetIdle(MHD_Connection* connection, unsigned seconds) const {
    if (options_.thread_per_connection) SetTimeout(connection, seconds);
  }

  // Excess bytes are read and dropped: clients read the answer only after they have sent
  // everything.
  void Receive(Exchange& exchange, std::string_view data) {
    if (exchange.refusal) return;
    const ServerLimits& limits = options_.limits;
    if (exchange.body.size() + data.size() > limits.body_bytes)
      exchange.refusal =
          handlers_.refuse(MHD_HTTP_CONTENT_TOO_LARGE,
                           fmt::format("the request is larger than {} bytes", limits.body_bytes));
    else if (bodies_bytes_ + data.size() > limits.bodies_bytes)
      exchange.refusal =
          handlers_.refuse(MHD_HTTP_SERVICE_UNAVAILABLE, "too much at the same time: try again");
    if (exchange.refusal) {
      bodies_bytes_ -= std::exchange(exchange.received, 0);
      exchange.body = {};
      return;
    }
    exchange.body.append(data);
    exchange.received += data.size();
    bodies_bytes_ += data.size();
  }

  MHD_Daemon* Start() {
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_USE_ITC;
    if (options_.thread_per_connection) flags |= MHD_USE_THREAD_PER_CONNECTION;
    if (options_.listen_fd < 0) flags |= MHD_USE_NO_LISTEN_SOCKET;
    if (options_.tls) flags |= MHD_USE_TLS;
    std::vector<MHD_OptionItem> items;
    if (options_.listen_fd >= 0)
      items.push_back({MHD_OPTION_LISTEN_SOCKET, options_.listen_fd, nullptr});
    if (options_.tls) {
      items.push_back({MHD_OPTION_HTTPS_MEM_CERT, 0, options_.tls->certificate.data()});
      items.push_back({MHD_OPTION_HTTPS_MEM_KEY, 0, options_.tls->key.data()});
      items.push_back({MHD_OPTION_HTTPS_PRIORITIES, 0, const_cast<char*>(kTlsVersions)});
    }
    items.push_back({MHD_OPTION_END, 0, nullptr});
    const ServerLimits& limits = options_.limits;
    MHD_Daemon* const started =
        MHD_start_daemon(flags, 0, nullptr, nullptr, Handle, this, MHD_OPTION_CONNECTION_LIMIT,
                         limits.connections, MHD_OPTION_CONNECTION_TIMEOUT, limits.idle_seconds,
                         MHD_OPTION_NOTIFY_COMPLETED, Completed, this, MHD_OPTION_NOTIFY_CONNECTION,
                         Changed, this, MHD_OPTION_ARRAY, items.data(), MHD_OPTION_END);
    if (started != nullptr) return started;
    if (options_.tls)
      Fail(ErrorCode::kConfig, "cannot serve {} with this certificate and key", options_.name);
    Fail(ErrorCode::kOsError, "cannot serve {}: out of threads or memory", options_.name);
  }

  // libmicrohttpd's own limit is reset by every byte.
  void CutOffSlowOnes(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    std::condition_variable_any never;
    while (!never.wait_for(lock, stop, kCutEvery, [&] { return stop.stop_requested(); }))
      for (const auto& [fd, since] : since_)
        if (Now() - since > options_.limits.request_seconds) ::shutdown(fd, SHUT_RDWR);
  }

  Options options_;
  const ServerHandlers handlers_;
  std::atomic<size_t> bodies_bytes_ = 0;
  std::mutex mutex_;
  std::map<int, double> since_;  // by connection: when it began, or its last request ended
  MHD_Daemon* daemon_ = nullptr;
  std::jthread cutting_;
};

HttpServer::HttpServer(Options options, ServerHandlers handlers)
    : served_(std::make_unique<Served>(std::move(options), std::move(handlers))) {}

HttpServer::~HttpServer() = default;

bool HttpServer::Add(int fd) { return served_->Add(fd); }

void HttpServer::Use(TlsCredentials tls) { served_->Use(std::move(tls)); }

}  // namespace renzan
