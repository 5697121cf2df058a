#include "renzan/cluster/kubernetes/process/http_server.h"

#include <fcntl.h>
#include <microhttpd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <utility>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/base/http/server_parts.h"
#include "renzan/base/process/tcp_listener.h"
#include "renzan/cluster/kubernetes/api/wait.h"

namespace renzan::cluster::kubernetes {
namespace {

constexpr double kCutEverySeconds = 1;

double Now() { return SystemClock().MonotonicSeconds(); }

// A request until its answer has been sent.
struct Exchange {
  std::string body;
  std::optional<ServerAnswer> refusal;
};

MHD_Result Send(MHD_Connection* connection, const ServerAnswer& answer) {
  return SendText(connection, answer.status, answer.text, answer.content_type) ? MHD_YES : MHD_NO;
}

}  // namespace

// The callbacks of libmicrohttpd.
class HttpServer::Callbacks {
 public:
  static MHD_Result Handle(void* self, MHD_Connection* connection, const char* path,
                           const char* method, const char*, const char* data, size_t* bytes,
                           void** state) {
    auto& server = *static_cast<HttpServer*>(self);
    if (*state == nullptr) {
      *state = new Exchange{.body = {}, .refusal = RefusalOf(server, path, method)};
      return MHD_YES;
    }
    auto& exchange = *static_cast<Exchange*>(*state);
    if (*bytes > 0) {
      Receive(server, exchange, {data, *bytes});
      *bytes = 0;
      return MHD_YES;
    }
    if (exchange.refusal) return Send(connection, *exchange.refusal);
    return Send(connection, std::strcmp(method, "GET") == 0
                                ? server.handlers_.get.at(path)()
                                : server.handlers_.post.at(path)(exchange.body));
  }

  static void Completed(void* self, MHD_Connection* connection, void** state,
                        MHD_RequestTerminationCode) {
    auto& server = *static_cast<HttpServer*>(self);
    const std::unique_ptr<Exchange> exchange(static_cast<Exchange*>(*state));
    *state = nullptr;
    if (exchange) server.bodies_bytes_ -= exchange->body.size();
    const std::lock_guard lock(server.mutex_);
    if (const auto at = server.since_.find(DescriptorOf(connection)); at != server.since_.end())
      at->second = Now();
  }

  static void Changed(void* self, MHD_Connection* connection, void**,
                      MHD_ConnectionNotificationCode what) {
    auto& server = *static_cast<HttpServer*>(self);
    const std::lock_guard lock(server.mutex_);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED)
      server.since_.erase(DescriptorOf(connection));
    else
      server.since_[DescriptorOf(connection)] = Now();
  }

 private:
  static std::optional<ServerAnswer> RefusalOf(const HttpServer& server, const char* path,
                                               const char* method) {
    const bool gets = server.handlers_.get.contains(path);
    const bool posts = server.handlers_.post.contains(path);
    if (!gets && !posts) return ServerAnswer{MHD_HTTP_NOT_FOUND, "there is no such path\n"};
    if (std::strcmp(method, gets ? "GET" : "POST") == 0) return std::nullopt;
    return ServerAnswer{MHD_HTTP_METHOD_NOT_ALLOWED, gets ? "only GET\n" : "only POST\n"};
  }

  // Excess bytes are read and dropped: clients read the answer only after they have sent
  // everything.
  static void Receive(HttpServer& server, Exchange& exchange, std::string_view data) {
    if (exchange.refusal) return;
    const HttpLimits& limits = server.limits_;
    if (exchange.body.size() + data.size() > limits.body_bytes)
      exchange.refusal = {MHD_HTTP_CONTENT_TOO_LARGE,
                          fmt::format("more than {} bytes\n", limits.body_bytes)};
    else if (server.bodies_bytes_ + data.size() > limits.bodies_bytes)
      exchange.refusal = {MHD_HTTP_SERVICE_UNAVAILABLE, "too much at the same time: try again\n"};
    if (exchange.refusal) {
      server.bodies_bytes_ -= std::exchange(exchange.body, {}).size();
      return;
    }
    exchange.body.append(data);
    server.bodies_bytes_ += data.size();
  }
};

HttpServer::HttpServer(const std::string& address, HttpHandlers handlers, const char* option,
                       std::optional<TlsCredentials> tls, HttpLimits limits)
    : handlers_(std::move(handlers)),
      limits_(limits),
      fd_(ListenOnTcp(address, option)),
      url_(UrlOf(fd_)),
      tls_(std::move(tls)) {
  if (tls_) url_.replace(0, 4, "https");
  // While credentials are replaced, two daemons accept connections: neither may block in accept().
  ::fcntl(fd_, F_SETFL, O_NONBLOCK);
  daemon_ = Start();
  if (daemon_ == nullptr) {
    ::close(fd_);
    if (tls_) Fail(ErrorCode::kConfig, "cannot serve {} with this certificate and key", address);
    Fail(ErrorCode::kOsError, "cannot serve {}: out of threads or memory", address);
  }
  cutting_ = std::jthread([this](const std::stop_token& stop) { CutOffSlowOnes(stop); });
}

HttpServer::~HttpServer() {
  cutting_.request_stop();
  cutting_.join();
  ::MHD_stop_daemon(daemon_);  // also closes the socket
}

MHD_Daemon* HttpServer::Start() {
  const TlsOptions tls(tls_ ? &*tls_ : nullptr);
  const unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_USE_ITC | tls.flags();
  return ::MHD_start_daemon(flags, 0, nullptr, nullptr, Callbacks::Handle, this,
                            MHD_OPTION_LISTEN_SOCKET, fd_, MHD_OPTION_CONNECTION_LIMIT,
                            limits_.connections, MHD_OPTION_CONNECTION_TIMEOUT,
                            limits_.idle_seconds, MHD_OPTION_NOTIFY_COMPLETED, Callbacks::Completed,
                            this, MHD_OPTION_NOTIFY_CONNECTION, Callbacks::Changed, this,
                            MHD_OPTION_ARRAY, tls.get(), MHD_OPTION_END);
}

void HttpServer::Use(TlsCredentials tls) {
  std::optional<TlsCredentials> old = std::exchange(tls_, std::move(tls));
  MHD_Daemon* const started = Start();
  if (started == nullptr) {
    tls_ = std::move(old);
    Fail(ErrorCode::kConfig, "cannot serve {} with this certificate and key", url_);
  }
  MHD_Daemon* const stopped = std::exchange(daemon_, started);
  ::MHD_quiesce_daemon(stopped);  // so that it leaves the socket open
  ::MHD_stop_daemon(stopped);
}

// libmicrohttpd's own limit is reset by every byte.
void HttpServer::CutOffSlowOnes(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    WaitFor(kCutEverySeconds, stop);
    const std::lock_guard lock(mutex_);
    for (const auto& [fd, since] : since_)
      if (Now() - since > limits_.request_seconds) ::shutdown(fd, SHUT_RDWR);
  }
}

}  // namespace renzan::cluster::kubernetes
