#pragma once

// One connection to an API server, kept alive between requests, over libcurl. For one thread at a
// time. Sends no write twice: a connection that breaks after its body was sent is an error.

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "renzan/cluster/kubernetes/api/access.h"

namespace renzan::cluster::kubernetes {

struct HttpRequest {
  std::string method;  // GET, or one that writes: these have a body
  std::string target;  // path and query
  std::string body = {};
  std::string content_type = "application/json";
  double timeout_seconds = 30;
  // Set: gets the body of a successful answer piece by piece. An exception that it throws ends the
  // transfer and is rethrown.
  std::function<void(std::string_view piece)> take = {};
};

struct HttpAnswer {
  int status = 0;
  std::string body = {};  // of a successful answer only without HttpRequest::take
  std::optional<double> retry_after_seconds = {};
};

class HttpSession {
 public:
  // Connects with the first request. Throws Error kOsError.
  HttpSession(const Access& access, double connect_timeout_seconds, size_t max_body_bytes,
              std::stop_token stop);
  ~HttpSession();
  HttpSession(const HttpSession&) = delete;
  HttpSession& operator=(const HttpSession&) = delete;

  // Returns the answer, whatever its status. Throws an ApiError without a status if there is none,
  // if it is incomplete or too large, or if there are no credentials.
  HttpAnswer Send(const HttpRequest& request);

  // "PUT https://HOST:PORT/PATH", for messages.
  std::string Describe(const HttpRequest& request) const;
  const Access& access() const { return access_; }
  // After a 401: whether it is worth another attempt. Throws ApiError if there are no credentials.
  bool RenewCredentials();
  std::stop_token stop() const { return stop_; }

 private:
  struct Transfer;
  void SetUp(Transfer& transfer, const HttpRequest& request);
  void SetUpTls();
  int Run();
  [[noreturn]] void FailTransfer(const Transfer& transfer, const HttpRequest& request, int code);
  [[noreturn]] void FailStopped(const HttpRequest& request, bool sent) const;

  const Access access_;
  const double connect_timeout_seconds_;
  const size_t max_body_bytes_;
  const std::stop_token stop_;
  // Of the last request; null if Access has no Credentials.
  std::shared_ptr<const Credential> credential_;
  struct Handles;
  std::unique_ptr<Handles> handles_;
};

}  // namespace renzan::cluster::kubernetes
