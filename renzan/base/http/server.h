#pragma once

// An HTTP server, around libmicrohttpd, on any listening socket, with or without TLS. It receives
// requests within limits; whose requests are answered, and how, its handlers say. A slow client
// does not keep others waiting.

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "renzan/base/tls/tls_credentials.h"

namespace renzan {

// Without its body.
struct ServerRequest {
  std::string method;  // "GET"
  std::string path;    // "/v1/jobs"
  std::map<std::string, std::string> query = {};
  std::string authorization = {};  // the header; "": none
  int fd = -1;                     // the connection's
};

struct ServerAnswer {
  unsigned status = 200;  // 0: no answer, the connection is closed
  std::string text = {};
  const char* content_type = "text/plain; charset=utf-8";
  bool last = false;  // closes the connection, at once if the request is refused
  // Instead of `text`: returns 0 at the end. May block until there is more, and has to notice
  // itself that the client has gone.
  std::function<size_t(char* data, size_t max)> stream = {};
  std::function<void()> sent = {};  // called after that, or once sending has failed
};

// Called on the server's threads. They must not throw.
struct ServerHandlers {
  using Answer = std::function<ServerAnswer(std::string body)>;
  // The headers of a request have arrived: what answers it once its body has, or a refusal.
  std::function<std::variant<Answer, ServerAnswer>(const ServerRequest& request)> begin;
  // The answer to a request that is too large (413), or to one too many (503).
  std::function<ServerAnswer(unsigned status, const std::string& why)> refuse;
  // A connection ends; its descriptor is still open.
  std::function<void(int fd)> closed = [](int) {};
};

struct ServerLimits {
  unsigned connections = 64;
  unsigned idle_seconds = 10;  // without a byte
  // The same during a request, with a thread per connection. None while a stream is sent.
  unsigned idle_in_request_seconds = 10;
  // From the beginning of a connection, or the end of its last request, to the end of the answer;
  // with first_headers_only, until the headers of the connection's first request have arrived.
  double request_seconds = 20;
  bool first_headers_only = false;
  size_t body_bytes = 8 << 20;     // of one request
  size_t bodies_bytes = 64 << 20;  // of all that are being received or answered
};

class HttpServer {
 public:
  struct Options {
    std::string name;    // in errors, such as its address
    int listen_fd = -1;  // the server owns it; -1: connections come through Add()
    std::optional<TlsCredentials> tls = {};  // over HTTPS only
    // Else one thread answers all requests, one after the other.
    bool thread_per_connection = false;
    ServerLimits limits = {};
  };
  // Throws Error kOsError, or kConfig if the credentials cannot be used.
  HttpServer(Options options, ServerHandlers handlers);
  // Ends all connections.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Serves a connection, and owns it. False if it cannot: then it has closed it.
  bool Add(int fd);

  // Applies to connections from now on; existing ones are closed, and their clients connect again.
  // For a moment, two threads answer. Throws Error kConfig if the credentials cannot be used: then
  // nothing changes. Only with a listen_fd and `tls`; for one thread.
  void Use(TlsCredentials tls);

 private:
  class Served;
  const std::unique_ptr<Served> served_;
};

}  // namespace renzan
