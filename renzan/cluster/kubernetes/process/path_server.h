#pragma once

// Answers the requests of kubelets, Prometheus and API servers to a replica, by path, over HTTP or
// HTTPS, one after the other in a thread of its own. A slow client does not keep others waiting and
// is cut off; one that sends too much gets an error.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "renzan/base/http/server.h"

namespace renzan::cluster::kubernetes {

// By path. Called in the server's thread (for a moment in two threads while credentials are
// replaced); they must not throw.
using Probes = std::map<std::string, std::function<ServerAnswer()>>;
struct PathHandlers {
  Probes get = {};
  std::map<std::string, std::function<ServerAnswer(const std::string& body)>> post = {};
};

class PathServer {
 public:
  // `address`: "HOST:PORT"; "0.0.0.0:8080" for all addresses. `option` is the user's option that
  // gave it. With `tls`, over HTTPS only. Throws Error kUsage, kCantCreate or kOsError, or kConfig
  // if the credentials cannot be used.
  PathServer(const std::string& address, PathHandlers handlers, const char* option = "--listen",
             std::optional<TlsCredentials> tls = std::nullopt, const ServerLimits& limits = {});

  // As HttpServer::Use().
  void Use(TlsCredentials tls) { server_.Use(std::move(tls)); }

  // "http://127.0.0.1:8080"
  const std::string& url() const { return url_; }

 private:
  const int fd_;
  const std::string url_;
  HttpServer server_;
};

}  // namespace renzan::cluster::kubernetes
