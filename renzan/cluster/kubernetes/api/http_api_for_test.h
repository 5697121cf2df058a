#pragma once

// Shared by tests of the API client.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "renzan/cluster/kubernetes/api/http_api.h"

namespace renzan::cluster::kubernetes {

inline const Kind kPods{"", "v1", "pods", "Pod"};
inline const Kind kJobs{"batch", "v1", "jobs", "Job"};

inline Access AccessTo(const std::string& url) { return {.from = "the test", .server = url}; }

inline Json NamedObject(const std::string& name, const std::string& version = "1") {
  return {{"metadata", {{"name", name}, {"resourceVersion", version}, {"uid", "u-" + name}}}};
}

inline std::string StatusText(int code, const std::string& reason, const std::string& message) {
  return Json{{"kind", "Status"},
              {"code", code},
              {"reason", reason},
              {"message", message},
              {"details", {{"name", "a"}}}}
      .dump();
}

// The error of a call.
template <typename Call>
ApiError ErrorOf(const Call& call) {
  try {
    call();
  } catch (const ApiError& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return ApiError(0, "", "", false);
}

}  // namespace renzan::cluster::kubernetes
