#pragma once

// Reads the API server's answers.

#include <string>

#include "renzan/cluster/kubernetes/api/api.h"

namespace renzan::cluster::kubernetes {

// What was asked, for messages.
struct Asked {
  std::string what;  // "PUT https://HOST:PORT/PATH"
  std::string from;  // Access::from
  bool is_write = false;
};

// Throws the ApiError for an answer that is not 2xx: a Kubernetes Status, or any text of a proxy.
[[noreturn]] void FailAsAnswered(const Asked& asked, int http_status, const std::string& body);

// The same for a Status that arrived otherwise, such as an event of a watch.
[[noreturn]] void FailWithStatus(const Asked& asked, int http_status, const Json& status);

// The object in a 2xx answer. Throws ApiError with reason InvalidAnswer.
Json ParseObject(const Asked& asked, const std::string& body);

[[noreturn]] void FailInvalid(const Asked& asked, const std::string& why);

// Whether it has a metadata.resourceVersion and, unless it is a list or a bookmark, a
// metadata.name. `object` may be any JSON.
bool HasVersion(const Json& object);
bool HasNameAndVersion(const Json& object);

}  // namespace renzan::cluster::kubernetes
