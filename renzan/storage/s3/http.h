#pragma once

// One HTTP request and its answer, over libcurl: no retries, no redirects, no proxy, only http and
// https. Thread-safe: each request in progress has a connection of its own, and connections are
// kept for later requests.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace renzan::s3 {

// Where the bytes of an answer go, in order; `at` counts from the first. What it throws ends the
// transfer.
using TakeBytes = std::function<void(uint64_t at, std::span<const std::byte> bytes)>;

struct HttpRequest {
  std::string method;  // GET, HEAD, PUT, POST or DELETE
  std::string url;     // encoded; sent as it is
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string_view body = {};  // of PUT and POST; must outlive the call
  // Takes the body of an answer with status 206, of at most so many bytes. Every other body, and
  // all without it, become HttpAnswer::body.
  TakeBytes take = {};
  uint64_t take_at_most = 0;
  double timeout_seconds = 30;  // of the whole transfer
};

struct HttpAnswer {
  int status = 0;
  std::map<std::string, std::string> headers = {};  // names in lower case
  std::string body = {};
  uint64_t taken = 0;  // bytes that went to HttpRequest::take

  // Empty if there is no such header. `name` in lower case.
  std::string Header(const std::string& name) const;
};

// Why there is no answer, or no complete one.
struct HttpFailure {
  enum class Kind {
    kNotReached,  // no name, no route, nothing listens: nothing was sent
    kNotTrusted,  // the server's certificate
    kBroken,      // afterwards; the server may have done what was asked
  };
  Kind kind = Kind::kBroken;
  std::string what;  // without the address
};

// The part of Http that credentials need, so that tests can play a server.
class HttpSender {
 public:
  virtual ~HttpSender() = default;
  // Throws HttpFailure, and what HttpRequest::take has thrown.
  virtual HttpAnswer Send(const HttpRequest& request) = 0;
};

class Http : public HttpSender {
 public:
  // `ca_bundle`: a file of trusted certificates in PEM; empty: the system's.
  explicit Http(std::string ca_bundle = "");
  ~Http() override;
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;

  HttpAnswer Send(const HttpRequest& request) override;

 private:
  struct Connection;
  std::unique_ptr<Connection> Take();
  void GiveBack(std::unique_ptr<Connection> connection);

  const std::string ca_bundle_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_;
};

}  // namespace renzan::s3
