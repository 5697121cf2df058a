#pragma once

// One connection to an API server, kept alive between requests. For one thread at a time. Sends no
// write twice: a connection that breaks after its body was sent is an error.

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "renzan/base/http/http.h"
#include "renzan/cluster/kubernetes/api/access.h"

namespace renzan::cluster::kubernetes {

struct ApiRequest {
  std::string method;  // GET, or one that writes: these have a body
  std::string target;  // path and query
  std::string body = {};
  std::string content_type = "application/json";
  double timeout_seconds = 30;
  // Set: gets the body of a successful answer piece by piece. An exception that it throws ends the
  // transfer and is rethrown.
  std::function<void(std::string_view piece)> take = {};

  bool is_write() const { return method != "GET"; }
};

class Session {
 public:
  // Connects with the first request. Throws Error kOsError.
  Session(const Access& access, double connect_timeout_seconds, size_t max_body_bytes,
          std::stop_token stop);

  // Returns the answer, whatever its status. Throws an ApiError without a status if there is none,
  // if it is incomplete or too large, or if there are no credentials.
  HttpAnswer Send(const ApiRequest& request);

  // "PUT https://HOST:PORT/PATH", for messages.
  std::string Describe(const ApiRequest& request) const;
  const Access& access() const { return access_; }
  // After a 401: whether it is worth another attempt. Throws ApiError if there are no credentials.
  bool RenewCredentials();
  std::stop_token stop() const { return stop_; }

 private:
  [[noreturn]] void FailTransfer(const ApiRequest& request, const HttpFailure& failure) const;

  const Access access_;
  const double connect_timeout_seconds_;
  const size_t max_body_bytes_;
  const std::stop_token stop_;
  // Of the last request; null if Access has no Credentials.
  std::shared_ptr<const Credential> credential_;
  Http http_;
};

}  // namespace renzan::cluster::kubernetes
