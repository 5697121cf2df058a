#pragma once

// The Api of a real server, over one HTTP connection.
//
// Every request has a time limit. 429, and 503 with Retry-After, mean that a busy server refused a
// request without executing it: it is retried a few times. Everything else is an ApiError
// immediately.

#include <memory>
#include <string>

#include "renzan/cluster/kubernetes/api/access.h"
#include "renzan/cluster/kubernetes/api/api.h"
#include "renzan/cluster/kubernetes/api/session.h"

namespace renzan::cluster::kubernetes {

struct HttpApiOptions {
  double connect_timeout_seconds = 5;
  double request_timeout_seconds = 30;  // of each page of a list
  // The server is asked to end a watch after this time; some seconds later the client gives up.
  int watch_seconds = 290;
  double watch_grace_seconds = 20;
  int page_size = 500;
  size_t max_answer_bytes = 256 << 20;  // a page of a list, or one event
  int max_retries = 5;                  // after 429 and 503
  double longest_retry_wait_seconds = 30;
};

class HttpApi : public Api {
 public:
  // Connects with the first request. Throws Error kOsError.
  explicit HttpApi(const Access& access, HttpApiOptions options = {}, std::stop_token stop = {});

  Json Get(const Kind& kind, const std::string& ns, const std::string& name,
           const std::string& subresource = "") override;
  Json List(const Kind& kind, const std::string& ns, const Selector& selector) override;
  Json Create(const Kind& kind, const std::string& ns, const Json& object) override;
  Json Replace(const Kind& kind, const std::string& ns, const Json& object,
               const std::string& subresource = "") override;
  Json MergePatch(const Kind& kind, const std::string& ns, const std::string& name,
                  const Json& patch, const std::string& subresource = "") override;
  void Delete(const Kind& kind, const std::string& ns, const std::string& name,
              const std::string& uid, std::optional<int64_t> grace_seconds) override;
  void Bind(const std::string& ns, const std::string& pod, const std::string& uid,
            const std::string& node) override;
  void Watch(const Kind& kind, const std::string& ns, const Selector& selector,
             const std::string& resource_version,
             const std::function<void(std::string_view type, Json&& object)>& take) override;

 private:
  Json Read(const std::string& target);
  Json Write(const char* method, std::string target, const Json& body,
             const char* content_type = "application/json");
  // Sends `request` until the server is not too busy. Throws ApiError unless the status is 2xx.
  HttpAnswer Send(ApiRequest request);
  bool WaitToRetry(const HttpAnswer& answer, int attempt);
  Json ListOnce(const Kind& kind, const std::string& target);

  const HttpApiOptions options_;
  Session session_;
};

// Each Api has a connection of its own.
ApiFactory MakeHttpApis(Access access, HttpApiOptions options = {});

}  // namespace renzan::cluster::kubernetes
