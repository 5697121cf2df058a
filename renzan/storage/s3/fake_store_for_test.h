#pragma once

// An S3-compatible store for tests, in memory: the part of the protocol that Client uses, with
// short list pages and injected faults. It checks what it is sent: the access key, the body's
// checksum, the sizes and etags of parts. Thread-safe.

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "renzan/storage/s3/fake_http_for_test.h"
#include "renzan/storage/s3/settings.h"

namespace renzan::s3 {

// What goes wrong with one request.
struct Fault {
  enum class Kind {
    kNone,
    kCutBefore,         // the connection ends before anything is done
    kCutAfter,          // the request is executed, but the connection ends before the answer
    kCutInHead,         // ... in the answer's head
    kCutInBody,         // ... in the answer's body
    kAnswer,            // nothing is done, and this error is the answer
    kAnswerAfter,       // the request is executed, but this error is the answer
    kIgnoreConditions,  // the request is executed regardless of If-Match and If-None-Match
  } kind = Kind::kNone;
  int status = 0;
  std::string code = {};
  std::string body = {};  // instead of XML with the code

  static Fault None() { return {}; }
  static Fault CutBefore() { return {.kind = Kind::kCutBefore}; }
  static Fault CutAfter() { return {.kind = Kind::kCutAfter}; }
  static Fault CutInHead() { return {.kind = Kind::kCutInHead}; }
  static Fault CutInBody() { return {.kind = Kind::kCutInBody}; }
  static Fault Answer(int status, std::string code, std::string body = "") {
    return {Kind::kAnswer, status, std::move(code), std::move(body)};
  }
  static Fault AnswerAfter(int status, std::string code) {
    return {Kind::kAnswerAfter, status, std::move(code), ""};
  }
  static Fault InternalError() { return Answer(500, "InternalError"); }
  static Fault SlowDown() { return Answer(503, "SlowDown"); }
  static Fault TooManyRequests() { return Answer(429, "TooManyRequests"); }
  static Fault TimeTooSkewed() { return Answer(403, "RequestTimeTooSkewed"); }
  static Fault ExpiredToken() { return Answer(400, "ExpiredToken"); }
  static Fault AccessDenied() { return Answer(403, "AccessDenied"); }
  static Fault IgnoreConditions() { return {.kind = Kind::kIgnoreConditions}; }
};

class FakeStore {
 public:
  static constexpr char kBucket[] = "bucket";
  static constexpr char kAccessKey[] = "ACCESSKEY", kSecretKey[] = "wJalrSECRET/KEY",
                        kSessionToken[] = "SESSIONTOKEN";

  // `page`: the most entries in one page of a list.
  explicit FakeStore(size_t page = 3) : page_(page) {}

  std::string url() const { return server_.url(); }
  // The environment of a program that uses this store.
  Environment environment() const;
  // The only access key that it accepts from now on.
  void SetAccessKey(const std::string& key);

  // Called for each request, with arguments such as "GET", "/bucket/a%20key?uploadId=1". The index
  // counts requests from 0 since the plan was set.
  using Plan =
      std::function<Fault(int index, const std::string& method, const std::string& target)>;
  void SetPlan(Plan plan);
  // Affects only the next request.
  void FailNext(Fault fault);
  // Ends all faults.
  void Heal() { SetPlan(nullptr); }

  // All requests since the plan was set or the store created.
  std::vector<FakeRequest> requests();  // without their bodies
  int CountOf(const std::string& method);

  std::vector<std::string> keys();
  // Nothing if there is no such object.
  std::optional<std::string> Content(const std::string& key);
  // Whether the object has this content. Copies nothing.
  bool Holds(const std::string& key, std::string_view content);
  void Put(const std::string& key, const std::string& content);
  void Erase(const std::string& key);
  size_t unfinished_uploads();

 private:
  struct Object {
    std::string content, etag;
  };
  struct Upload {
    std::string key;
    std::map<int, Object> parts;
  };

  FakeAnswer Handle(const FakeRequest& request);
  FakeAnswer Execute(const FakeRequest& request, bool keep_conditions);
  // Nothing if the request is valid.
  std::optional<FakeAnswer> CheckRequest(const FakeRequest& request) const;
  std::optional<FakeAnswer> CheckConditions(const FakeRequest& request,
                                            const std::string& key) const;
  FakeAnswer Read(const FakeRequest& request, const std::string& key, bool keep_conditions) const;
  FakeAnswer List(const FakeRequest& request) const;
  FakeAnswer ListUploads(const FakeRequest& request) const;
  FakeAnswer OfUpload(const FakeRequest& request, const std::string& key);
  FakeAnswer Complete(const FakeRequest& request, Upload& upload);

  const size_t page_;
  std::mutex mutex_;
  Plan plan_;
  std::vector<FakeRequest> requests_;
  std::string access_key_ = kAccessKey;
  std::map<std::string, Object> objects_;
  std::map<std::string, Upload> uploads_;  // by id
  int last_upload_ = 0;
  FakeHttpServer server_{[this](const FakeRequest& request) { return Handle(request); }};  // last
};

}  // namespace renzan::s3
