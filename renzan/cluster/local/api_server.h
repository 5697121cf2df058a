#pragma once

// HTTP over the daemon's Unix socket (libmicrohttpd): a thread for each connection, so that one who
// follows a log or explains a job keeps nobody else waiting.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "renzan/cluster/local/api.h"

struct MHD_Daemon;

namespace renzan::cluster {

class ApiServer {
 public:
  // Serves on `listen_fd`, which it takes over. `shut_down` is called, from any thread, once a
  // request for it has been answered. Throws Error kOsError.
  ApiServer(ApiContext context, int listen_fd, std::vector<std::string> allow_users,
            std::function<void()> shut_down);
  // Ends all connections. What context.stop_fd stands for must be readable by then.
  ~ApiServer();
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  const ApiContext& context() const { return context_; }
  const std::vector<std::string>& allow_users() const { return allow_users_; }
  void ShutDown() const { shut_down_(); }

 private:
  struct StopDaemon {
    void operator()(MHD_Daemon* daemon) const;
  };

  const ApiContext context_;
  const std::vector<std::string> allow_users_;
  const std::function<void()> shut_down_;
  std::unique_ptr<MHD_Daemon, StopDaemon> daemon_;
};

}  // namespace renzan::cluster
