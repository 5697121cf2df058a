#pragma once

// The requests of an S3-compatible store, each retried until it is answered or a deadline has
// passed. Thread-safe.
//
// A request whose answer is lost may have been executed, yet all of these can be repeated: a
// conditional write compares what it finds in its place with what it meant to write.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/base/http/http.h"
#include "renzan/storage/s3/answers.h"
#include "renzan/storage/s3/credentials.h"
#include "renzan/storage/s3/location.h"
#include "renzan/storage/s3/retry_budget.h"
#include "renzan/storage/s3/settings.h"

namespace renzan::s3 {

// The condition under which a write takes effect.
struct Condition {
  enum class Kind { kNone, kAbsent, kMatches } kind = Kind::kNone;
  std::string etag = {};

  static Condition Absent() { return {.kind = Kind::kAbsent}; }
  static Condition Matches(std::string etag) {
    return {.kind = Kind::kMatches, .etag = std::move(etag)};
  }
};

class Client {
 public:
  struct Options {
    double retry_seconds = 120;  // from the first attempt at a request
    // Waits; returns early when a stop is requested. Tests replace it.
    std::function<void(double seconds, std::stop_token stop)> wait = {};
  };
  Client(const Settings& settings, const Environment& environment, const Clock& clock,
         Options options);

  // All throw Error: kNoInput for a bucket that does not exist, kNoPermission, kConfig for wrong
  // settings, kIo for a store that cannot be reached or does not work, kTempFail after `stop`.

  // Nothing if there is no such object.
  std::optional<Object> Head(const Location& location);
  struct Content {
    std::string text, etag;
  };
  std::optional<Content> Get(const Location& location);
  // Fills `out` from `offset` of the object, which must still have this etag. Throws Error kData if
  // it has changed or is too short, kNoInput (a missing file) if it is gone.
  void GetRange(const Location& location, const std::string& etag, uint64_t offset,
                std::span<std::byte> out, std::stop_token stop = {});
  // The same for `bytes` bytes, passed on as they arrive. If an attempt fails, they are passed on
  // again from the first.
  void StreamRange(const Location& location, const std::string& etag, uint64_t offset,
                   uint64_t bytes, const TakeBytes& take, std::stop_token stop = {});

  // The new etag; nothing if the condition does not hold, and then nothing is written.
  std::optional<std::string> Put(const Location& location, std::string_view body,
                                 const Condition& condition = {}, std::stop_token stop = {});
  // Succeeds if there is no such object.
  void Delete(const Location& location);

  struct Listing {
    std::vector<Object> objects;
    std::vector<std::string> prefixes;
  };
  // Everything whose key begins with `prefix`; with a delimiter only what lies directly below.
  Listing List(const std::string& bucket, const std::string& prefix, bool delimiter);
  // Whether there is any such object.
  bool HasAny(const std::string& bucket, const std::string& prefix);

  std::string BeginUpload(const Location& location);
  // `number` from 1. Returns the part's etag.
  std::string PutPart(const Location& location, const std::string& upload, int number,
                      std::string_view body, std::stop_token stop);
  void CompleteUpload(const Location& location, const std::string& upload,
                      const std::vector<std::string>& etags, uint64_t bytes);
  void AbortUpload(const Location& location, const std::string& upload);
  // Unfinished uploads to keys that begin with `prefix`.
  std::vector<std::pair<Location, std::string>> Uploads(const std::string& bucket,
                                                        const std::string& prefix);

  const Settings& settings() const { return settings_; }

 private:
  struct Request {
    std::string method;
    Location location;
    std::vector<std::pair<std::string, std::string>> query = {};
    std::vector<std::pair<std::string, std::string>> headers = {};
    std::string_view body = {};
    TakeBytes take = {};
    uint64_t take_at_most = 0;
    std::vector<int> expected = {};  // statuses besides 2xx that the caller understands
    // Why such an answer, or one with status 2xx, is a transient failure; "" if it is not.
    std::function<std::string(const HttpAnswer&)> trouble_with = {};
    std::stop_token stop = {};
  };
  struct Answer : HttpAnswer {
    bool repeated = false;  // an earlier attempt may have been executed
  };
  Answer Send(const Request& request);
  // Returns what `parse` finds in the answer's body.
  template <typename Function>
  auto Parse(const Request& request, const Function& parse);
  HttpAnswer SendOnce(const Request& request, const std::string& payload_sha256,
                      const Credentials& credentials);
  [[noreturn]] void FailWith(const Request& request, const HttpAnswer& answer);
  // An answer to HEAD has no body to say why it was refused; the answer to a GET has. Nothing if
  // the GET is not refused.
  std::optional<HttpAnswer> RefusalOfGet(const Location& location);

  const Settings settings_;
  const Clock& clock_;
  const Options options_;
  Http http_;
  CredentialSource credentials_;
  RetryBudget budget_;
};

}  // namespace renzan::s3
