#pragma once

// HTTP over the daemon's Unix socket, and by TCP for those who have its token (libmicrohttpd): a
// thread for each connection, so that one who follows a log or explains a job keeps nobody else
// waiting. How many connections one user may have is limited (api_connections.h); who has been
// silent for long is disconnected, unless they listen.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "renzan/cluster/local/server/api.h"
#include "renzan/cluster/local/server/api_connections.h"

struct MHD_Daemon;

namespace renzan::cluster::local {

struct ApiLimits {
  ConnectionLimits connections;
  // So long a connection may be silent before its first request and between two of them, and in the
  // midst of one. A log that is followed may be silent for ever.
  unsigned between_requests_seconds = 10, within_request_seconds = 120;
};

class ApiServer {
 public:
  // Serves on `listen_fd` and, unless that is -1, on the TCP socket `tcp_fd`, and takes both over.
  // Whoever comes by TCP with the token is taken for the daemon's own user. `shut_down` is called,
  // from any thread, once a request for it has been answered. Throws Error kOsError.
  struct Sockets {
    int listen_fd = -1, tcp_fd = -1;
    std::string token = {};
  };
  ApiServer(ApiContext context, Sockets sockets, std::vector<std::string> allow_users,
            std::function<void()> shut_down, const ApiLimits& limits = {});
  // Ends all connections. What context.stop_fd stands for must be readable by then.
  ~ApiServer();
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  // Nobody, if they are not to be served.
  std::optional<Caller> CallerOf(int fd, const char* authorization) const;
  const ApiContext& context() const { return context_; }
  const ApiLimits& limits() const { return limits_; }
  ConnectionBook& connections() { return connections_; }
  void ShutDown() const { shut_down_(); }

 private:
  void AcceptAll();
  void CloseSockets() const;
  void Accept(int listen_fd);
  struct StopDaemon {
    void operator()(MHD_Daemon* daemon) const;
  };

  const ApiContext context_;
  const std::vector<std::string> allow_users_;
  const std::function<void()> shut_down_;
  const ApiLimits limits_;
  ConnectionBook connections_;
  const Sockets sockets_;
  int stop_fd_;  // can be read once nobody is to be accepted any more
  std::unique_ptr<MHD_Daemon, StopDaemon> daemon_;
  std::thread accepting_;
};

}  // namespace renzan::cluster::local
