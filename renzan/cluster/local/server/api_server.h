#pragma once

// HTTP over the daemon's Unix socket, and HTTPS over TCP for clients with a token
// (base/http/server.h). One thread per connection, so that a client that follows a log or explains
// a job does not block others. Connections are limited by user (api_connections.h), and idle ones
// are closed.

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "renzan/base/http/server.h"
#include "renzan/base/process/descriptor.h"
#include "renzan/base/tls/tls_credentials.h"
#include "renzan/cluster/local/server/api.h"
#include "renzan/cluster/local/server/api_connections.h"

namespace renzan::cluster::local {

struct ApiLimits {
  ConnectionLimits connections;
  // Timeouts of an idle connection: outside and during a request. Followed logs have none.
  unsigned between_requests_seconds = 10, within_request_seconds = 120;
  // How long the headers of a connection's first request may take, however they trickle in.
  unsigned first_request_seconds = 10;
  // Where its user has too many, a connection waits for so long until one of them ends; so many
  // may.
  unsigned queued_seconds = 5;
  size_t queued_per_user = 1024, queued = 4096;
};

class ApiServer {
 public:
  // Serves on `listen_fd` and, unless it is -1, the TCP socket `tcp_fd`; takes ownership of both.
  // TCP clients are the users of their tokens (context.tokens), and `tls` is what they know the
  // daemon by. Throws Error kOsError, or kConfig if `tls` cannot be used.
  struct Sockets {
    int listen_fd = -1, tcp_fd = -1;
    TlsCredentials tls = {};
  };
  ApiServer(ApiContext context, Sockets sockets, std::vector<std::string> allow_users,
            const ApiLimits& limits = {});
  // Ends all connections. context.stop_fd must be readable by then.
  ~ApiServer();
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

 private:
  using Begun = std::variant<ServerHandlers::Answer, ServerAnswer>;
  ServerHandlers Handlers();
  Begun BeginRequest(const ServerRequest& request);
  ServerAnswer TooMany(int fd);
  Caller CallerOf(const ServerRequest& request) const;
  void AcceptAll();
  void Accept(int listen_fd);
  // Has been accepted, and waits until its user has fewer connections. No thread serves it.
  struct Queued {
    int fd;
    uid_t uid;
    std::chrono::steady_clock::time_point since;
  };
  size_t QueuedOf(uid_t uid) const;
  void ServeQueued();
  int UntilQueuedExpires() const;
  void Begin(int fd, uid_t uid);

  const ApiContext context_;
  const std::vector<std::string> allow_users_;
  const ApiLimits limits_;
  ConnectionTable connections_;
  const Descriptor socket_, tcp_socket_;
  Descriptor stop_;                                // readable when accepting must end
  Descriptor room_;                                // readable when a connection has ended
  std::deque<Queued> queue_;                       // of the accepting thread
  std::optional<HttpServer> server_, tcp_server_;  // the latter with TLS
  std::thread accepting_;
};

}  // namespace renzan::cluster::local
