#pragma once

// Answers the requests of kubelets, Prometheus and API servers to a replica, over HTTP or HTTPS,
// one after the other in a thread of its own. A slow client does not keep others waiting and is cut
// off; one that sends too much gets an error.

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "renzan/base/tls/tls_credentials.h"

struct MHD_Daemon;

namespace renzan::cluster::kubernetes {

struct ServerAnswer {
  unsigned status = 200;
  std::string text;
  const char* content_type = "text/plain; version=0.0.4; charset=utf-8";
};

// By path. Called in the server's thread (for a moment in two threads while credentials are
// replaced); they must not throw.
using Probes = std::map<std::string, std::function<ServerAnswer()>>;
struct HttpHandlers {
  Probes get = {};
  std::map<std::string, std::function<ServerAnswer(const std::string& body)>> post = {};
};

struct HttpLimits {
  unsigned connections = 64;
  unsigned idle_seconds = 10;      // without a byte
  double request_seconds = 20;     // from the first byte to the answer
  size_t body_bytes = 8 << 20;     // of one request
  size_t bodies_bytes = 64 << 20;  // of all that are being received
};

class HttpServer {
 public:
  // `address`: "HOST:PORT"; "0.0.0.0:8080" for all addresses. `option` is the user's option that
  // gave it. With `tls`, over HTTPS only. Throws Error kUsage, kCantCreate or kOsError, or kConfig
  // if the credentials cannot be used.
  HttpServer(const std::string& address, HttpHandlers handlers, const char* option = "--listen",
             std::optional<TlsCredentials> tls = std::nullopt, HttpLimits limits = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Applies to connections from now on; existing ones are closed, and their clients connect again.
  // Throws Error kConfig if the credentials cannot be used: then nothing changes. For one thread.
  void Use(TlsCredentials tls);

  // "http://127.0.0.1:8080"
  const std::string& url() const { return url_; }

 private:
  class Callbacks;

  MHD_Daemon* Start();
  void CutOffSlowOnes(const std::stop_token& stop);

  const HttpHandlers handlers_;
  const HttpLimits limits_;
  int fd_ = -1;
  std::string url_;
  std::optional<TlsCredentials> tls_;
  std::atomic<size_t> bodies_bytes_ = 0;
  std::mutex mutex_;
  std::map<int, double> since_;  // by connection: when it began, or its last request ended
  MHD_Daemon* daemon_ = nullptr;
  std::jthread cutting_;
};

}  // namespace renzan::cluster::kubernetes
