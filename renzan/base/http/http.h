#pragma once

// One HTTP request and its answer, over libcurl: no redirects, no proxy of the environment, only
// http and https, and no request is sent twice. Thread-safe: each request in progress has a
// connection of its own, and connections are kept for later requests.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace renzan {

// Receives the bytes of an answer, in order; `at` counts from the first byte. An exception ends the
// transfer.
using TakeBytes = std::function<void(uint64_t at, std::span<const std::byte> bytes)>;

struct HttpRequest {
  std::string method;  // GET, HEAD, PUT, POST, PATCH or DELETE
  std::string url;     // encoded; sent as it is
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string_view body = {};    // not of GET and HEAD; must outlive the call
  std::string unix_socket = {};  // its path; empty: over TCP
  // The server's public key, as "sha256//" and Base64, which vouches for it instead of an authority
  // and a name; checked before anything is sent. Only for https.
  std::string pinned_key = {};
  // Receives the body of an answer with that status, up to this many bytes. All other bodies, or
  // all if it is unset, go to HttpAnswer::body.
  TakeBytes take = {};
  int take_status = 206;  // 0: all of success
  uint64_t take_at_most = 0;
  size_t body_at_most = 256u << 20;  // bytes of HttpAnswer::body
  double connect_timeout_seconds = 5;
  double timeout_seconds = 30;  // of the whole transfer; 0: none
  double stall_seconds = 20;    // without a byte in either direction; 0: no limit
  std::stop_token stop = {};    // ends the transfer at once
  // Connects anew, so that a kept connection that the server is just closing cannot lose it, and
  // closes the connection after the answer, so that none is held for nothing.
  bool fresh_connection = false;
  // If a kept connection ends before the answer, connects anew and sends the request there, unless
  // a part of its body was sent. Otherwise, that is a failure.
  bool repeat = false;
  std::string proxy_url = {};  // empty: none
  // Of https. PEM texts must outlive the call.
  std::string_view ca_pem = {};  // trusted authorities; empty: those of Http
  std::string_view client_certificate_pem = {}, client_key_pem = {};
  std::string server_name = {};  // in the server's certificate; empty: the URL's host
  bool verify_server = true;
};

struct HttpAnswer {
  int status = 0;
  std::map<std::string, std::string> headers = {};  // names in lower case
  std::string body = {};
  uint64_t taken = 0;  // bytes passed to HttpRequest::take
  std::optional<double> retry_after_seconds = {};

  // Empty if there is no such header. `name` in lower case.
  std::string Header(const std::string& name) const;
};

// Why there is no answer, or no complete one.
struct HttpFailure {
  enum class Kind {
    // Nothing was sent:
    kBadUrl,
    kUnknownHost,
    kNotReached,  // no route, nothing listens
    kNotTrusted,  // the server's certificate, or its key is not the pinned one
    kBadClientCertificate,
    // The server may have executed the request:
    kTimedOut,
    kBroken,
    kTooLarge,  // the answer
    kStopped,   // by HttpRequest::stop
  };
  Kind kind = Kind::kBroken;
  std::string what;            // without the address
  int os_error = 0;            // of kNotReached; 0: not known
  bool not_valid_now = false;  // of kNotTrusted: because of the certificate's dates
  bool sent_body = false;      // all of it

  bool maybe_executed() const { return kind >= Kind::kTimedOut; }
};

// The part of Http that tests replace with a fake server.
class HttpSender {
 public:
  virtual ~HttpSender() = default;
  // Throws HttpFailure, and whatever HttpRequest::take throws.
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

}  // namespace renzan
