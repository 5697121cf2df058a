#pragma once

// The requests that a controller makes to a Kubernetes API server; an interface, so that tests can
// replace the server. Objects are JSON as the server sends it.
//
// Each object is for one thread at a time; threads that work at the same time have one each, from
// an ApiFactory. Every function may block until its answer, a time-out or a stop, and throws
// ApiError for anything but success.

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "renzan/base/error.h"

namespace renzan::cluster::kubernetes {

using Json = nlohmann::json;

// A kind of object and its place in the API: {"", "v1", "pods", "Pod"}, {"batch", "v1", "jobs",
// "Job"}. The core group has no name.
struct Kind {
  std::string group;
  std::string version;
  std::string plural;  // in paths
  std::string name;    // in objects
};

// "v1", "batch/v1"
std::string ApiVersion(const Kind& kind);

// Selects all objects unless it is set.
struct Selector {
  std::string labels = {};  // "app=renzan,tier!=test"
  std::string fields = {};  // "spec.nodeName=a,status.phase!=Failed": few fields are supported
};

// A request that failed. The message says what was asked of which server, why it failed and what to
// do next.
class ApiError : public Error {
 public:
  // `reason` is the one in Kubernetes's Status: "Conflict", "AlreadyExists", "NotFound", "Expired".
  // The code follows from the status: kNoPermission for 401 and 403, kNoInput for 404, kTempFail
  // for 409 and 410, kData for other 4xx, kUnavailable for the rest.
  ApiError(int http_status, std::string reason, const std::string& message, bool maybe_executed);
  // The same with a code that no HTTP status stands for: kConfig for a certificate.
  ApiError(ErrorCode code, int http_status, std::string reason, const std::string& message,
           bool maybe_executed);

  // 0 if no complete answer came.
  int http_status() const { return http_status_; }
  const std::string& reason() const { return reason_; }
  // Whether the request may have been executed nevertheless: it was sent and not answered, or
  // answered with 5xx. Before a write is repeated or given up, read the object again.
  bool maybe_executed() const { return maybe_executed_; }

  bool no_answer() const { return http_status_ == 0; }
  bool is_not_found() const { return http_status_ == 404; }
  // The user lacks the right. Without credentials that the server accepts, it is not known.
  bool is_forbidden() const { return http_status_ == 403; }
  bool is_conflict() const { return reason_ == "Conflict"; }
  bool is_already_exists() const { return reason_ == "AlreadyExists"; }
  // The version or page asked for is too old: list again.
  bool is_expired() const { return http_status_ == 410; }
  // The Api was stopped; it did not wait for an answer.
  bool is_stopped() const { return reason_ == "Stopped"; }

 private:
  int http_status_;
  std::string reason_;
  bool maybe_executed_;
};

// In all functions, `ns` is a namespace; "" for objects that have none, or for objects of all
// namespaces. An object that is sent may lack apiVersion and kind.
class Api {
 public:
  virtual ~Api() = default;

  virtual Json Get(const Kind& kind, const std::string& ns, const std::string& name,
                   const std::string& subresource = "") = 0;
  // The whole list, read page by page: {"metadata": {"resourceVersion"}, "items": [...]}.
  virtual Json List(const Kind& kind, const std::string& ns, const Selector& selector) = 0;

  // Return the object as it is now. Fails with is_already_exists().
  virtual Json Create(const Kind& kind, const std::string& ns, const Json& object) = 0;
  // `object` must have the metadata.resourceVersion that it replaces. Fails with is_conflict() if
  // the object has changed since.
  virtual Json Replace(const Kind& kind, const std::string& ns, const Json& object,
                       const std::string& subresource = "") = 0;
  // RFC 7386: null removes a field, a list is replaced as a whole. A metadata.resourceVersion in
  // `patch` is a precondition (is_conflict()), and so is a metadata.uid (422).
  virtual Json MergePatch(const Kind& kind, const std::string& ns, const std::string& name,
                          const Json& patch, const std::string& subresource = "") = 0;

  // Does nothing if there is no such object. With a `uid`, fails with is_conflict() if another
  // object has the name. `grace_seconds` unset: the object's own. What the object owns is deleted
  // in the background.
  virtual void Delete(const Kind& kind, const std::string& ns, const std::string& name,
                      const std::string& uid, std::optional<int64_t> grace_seconds) = 0;

  // Assigns a pod to a node. Fails with is_conflict() if it has one already, even the same one.
  // With a `uid`, servers from 1.23 on also fail if another pod has the name; older ones ignore it.
  virtual void Bind(const std::string& ns, const std::string& pod, const std::string& uid,
                    const std::string& node) = 0;

  // Passes on what changed after `resource_version`, in order, until the server ends the stream,
  // which it does every few minutes: then returns, and another call continues. `type` is ADDED,
  // MODIFIED, DELETED or BOOKMARK (`object` has only a newer metadata.resourceVersion). Fails with
  // is_expired() if the version is too old. An exception of `take` ends the stream and is rethrown.
  virtual void Watch(const Kind& kind, const std::string& ns, const Selector& selector,
                     const std::string& resource_version,
                     const std::function<void(std::string_view type, Json&& object)>& take) = 0;
};

// Makes an Api, one for each thread. When `stop` is requested, its running request and all later
// ones fail within milliseconds with is_stopped().
using ApiFactory = std::function<std::unique_ptr<Api>(std::stop_token stop)>;

}  // namespace renzan::cluster::kubernetes
