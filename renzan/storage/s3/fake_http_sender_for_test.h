#pragma once

// For tests: plays a server without a connection. Thread-safe, except that `answer` must not change
// during a request.

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "renzan/base/http/http.h"

namespace renzan::s3 {

class FakeHttpSender : public HttpSender {
 public:
  HttpAnswer Send(const HttpRequest& request) override {
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    if (!answer) throw HttpFailure{.kind = HttpFailure::Kind::kNotReached, .what = "nobody there"};
    return answer(request);
  }

  std::vector<HttpRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

  // Unset: nothing listens. May throw HttpFailure.
  std::function<HttpAnswer(const HttpRequest&)> answer;

 private:
  mutable std::mutex mutex_;
  std::vector<HttpRequest> requests_;
};

}  // namespace renzan::s3
