#include "renzan/storage/s3/client.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>

#include "renzan/base/backoff.h"
#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/sha256.h"
#include "renzan/storage/s3/explain.h"

namespace renzan::s3 {
namespace {

constexpr double kFirstWaitSeconds = 0.1, kLongestWaitSeconds = 5;
// A slower transfer is as good as broken.
constexpr double kSlowestBytesPerSecond = 256e3;
// A connection on which nothing moves is broken: the transfer is retried.
constexpr double kStallSeconds = 20;
constexpr double kTimeoutSeconds = 60;
constexpr int kPreconditionFailed = 412;
constexpr int kNotFound = 404;
constexpr int kOutOfRange = 416;

void Wait(double seconds, std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, std::chrono::duration<double>(seconds), [] { return false; });
}

// A random part of the delay, so that clients that failed together do not retry together.
double Jittered(double seconds) {
  thread_local std::minstd_rand generator(std::random_device{}());
  return std::uniform_real_distribution<double>(0, seconds)(generator);
}

void AddCondition(const Condition& condition,
                  std::vector<std::pair<std::string, std::string>>* headers) {
  if (condition.kind == Condition::Kind::kAbsent) headers->emplace_back("if-none-match", "*");
  if (condition.kind == Condition::Kind::kMatches)
    headers->emplace_back("if-match", condition.etag);
}

}  // namespace

Client::Client(const Settings& settings, const Environment& environment, const Clock& clock,
               Options options)
    : settings_(settings),
      clock_(clock),
      options_([&] {
        if (!options.wait) options.wait = Wait;
        return options;
      }()),
      http_(settings.ca_bundle),
      credentials_(settings, environment, http_, clock) {}

HttpAnswer Client::SendOnce(const Request& request, const std::string& payload_sha256,
                            const Credentials& credentials) {
  const size_t host_begin = settings_.endpoint.find("://") + 3;
  const std::string scheme = settings_.endpoint.substr(0, host_begin);
  std::string host = settings_.endpoint.substr(host_begin), path;
  if (settings_.UsesPathStyle(request.location.bucket)) {
    path = "/" + UriEncode(request.location.bucket, false);
  } else {
    host = request.location.bucket + "." + host;
  }
  path += "/" + UriEncode(request.location.key, true);
  const SignedRequest sign =
      Sign({.method = request.method,
            .host = host,
            .path = path,
            .query = request.query,
            .headers = request.headers,
            .payload_sha256 = payload_sha256},
           credentials, settings_.region, static_cast<int64_t>(clock_.UnixSeconds()));
  const double bytes = static_cast<double>(request.body.size() + request.take_at_most);
  return http_.Send({.method = request.method,
                     .url = scheme + host + path + (sign.query.empty() ? "" : "?" + sign.query),
                     .headers = sign.headers,
                     .body = request.body,
                     .take = request.take,
                     .take_at_most = request.take_at_most,
                     .timeout_seconds = kTimeoutSeconds + bytes / kSlowestBytesPerSecond,
                     // A store may take long to assemble the parts of an upload.
                     .stall_seconds = request.method == "POST" ? 0.0 : kStallSeconds});
}

Client::Answer Client::Send(const Request& request) {
  const std::string payload_sha256 =
      request.body.empty() ? std::string(kEmptySha256) : Sha256Hex(request.body);
  const double begin = clock_.MonotonicSeconds();
  bool repeated = false, renewed = false;
  for (int attempt = 0;; ++attempt) {
    if (request.stop.stop_requested())
      Fail(ErrorCode::kTempFail, "{} {} was cancelled", request.method, request.location.Path());
    std::string trouble;
    try {
      const Credentials credentials = credentials_.Get();
      HttpAnswer answer = SendOnce(request, payload_sha256, credentials);
      const int status = answer.status;
      const bool understood =
          std::count(request.expected.begin(), request.expected.end(), status) > 0;
      // CompleteMultipartUpload may answer 200 and report a failure in the body.
      const std::string code =
          status >= 300 || request.method == "POST" ? ParseError(answer.body).code : "";
      if (understood || (status < 300 && code.empty())) {
        if (request.trouble_with) trouble = request.trouble_with(answer);
        if (trouble.empty()) {
          budget_.OnSuccess();
          Answer good;
          static_cast<HttpAnswer&>(good) = std::move(answer);
          good.repeated = repeated;
          return good;
        }
      } else if (RefusesCredentials(status, code) && !renewed && credentials_.Renew(credentials)) {
        renewed = true;
        continue;
      } else if (!IsTransient(status, code) && !(status < 300 && code == "InternalError")) {
        FailWith(request, answer);
      } else {
        repeated = repeated || status >= 500 || status < 300;
        trouble = code.empty() ? fmt::format("HTTP status {}", status)
                               : fmt::format("HTTP status {}, {}", status, code);
      }
    } catch (const Error& error) {
      // A service that issues credentials does not answer.
      if (error.code() != ErrorCode::kUnavailable) throw;
      trouble = error.what();
    } catch (const HttpFailure& failure) {
      if (failure.kind == HttpFailure::Kind::kNotTrusted)
        Fail(ErrorCode::kConfig,
             "{} {} at {}: the server's certificate is not trusted ({}); set AWS_CA_BUNDLE to the "
             "file with its authority's",
             request.method, request.location.Path(), settings_.endpoint, failure.what);
      repeated = repeated || failure.maybe_executed();
      trouble = failure.what;
    }
    const double wait = Jittered(Backoff(kFirstWaitSeconds, attempt, kLongestWaitSeconds));
    const double spent = clock_.MonotonicSeconds() - begin;
    if (spent + wait > options_.retry_seconds || !budget_.TakeOne())
      Fail(ErrorCode::kIo,
           "{} {}: the store at {} does not work ({} in {:.0f} s; the last: {}); is it "
           "running and reachable, and is AWS_ENDPOINT_URL right?",
           request.method, request.location.Path(), settings_.endpoint,
           Counted(attempt + 1, "attempt"), spent, trouble);
    options_.wait(wait, request.stop);
  }
}

void Client::FailWith(const Request& request, const HttpAnswer& answer) {
  Refused refused{.method = request.method,
                  .location = request.location,
                  .credentials_origin = credentials_.origin(),
                  .now_unix_seconds = clock_.UnixSeconds()};
  if (request.method == "HEAD")
    if (const std::optional<HttpAnswer> why = RefusalOfGet(request.location)) {
      refused.method = "GET";
      throw Explain(refused, *why, settings_);
    }
  throw Explain(refused, answer, settings_);
}

std::optional<HttpAnswer> Client::RefusalOfGet(const Location& location) {
  try {
    HttpAnswer answer = SendOnce({.method = "GET",
                                  .location = location,
                                  .headers = {{"range", "bytes=0-0"}},
                                  .take = [](uint64_t, std::span<const std::byte>) {},
                                  .take_at_most = 1},
                                 std::string(kEmptySha256), credentials_.Get());
    const std::string code = ParseError(answer.body).code;
    if (answer.status >= 400 && answer.status < kNotFound && !code.empty()) return answer;
  } catch (const HttpFailure&) {  // use the first answer
  } catch (const Error&) {
  }
  return std::nullopt;
}

std::optional<Object> Client::Head(const Location& location) {
  const Answer answer = Send({.method = "HEAD", .location = location, .expected = {kNotFound}});
  if (answer.status == kNotFound) return std::nullopt;
  return Object{.key = location.key,
                .bytes = std::stoull("0" + answer.Header("content-length")),
                .etag = answer.Header("etag")};
}

std::optional<Client::Content> Client::Get(const Location& location) {
  Request request{.method = "GET", .location = location, .expected = {kNotFound}};
  Answer answer = Send(request);
  if (answer.status == kNotFound) {
    if (ParseError(answer.body).code == "NoSuchBucket") FailWith(request, answer);
    return std::nullopt;
  }
  return Content{.text = std::move(answer.body), .etag = answer.Header("etag")};
}

void Client::GetRange(const Location& location, const std::string& etag, uint64_t offset,
                      std::span<std::byte> out, std::stop_token stop) {
  const auto take = [out](uint64_t at, std::span<const std::byte> bytes) {
    std::memcpy(out.data() + at, bytes.data(), bytes.size());
  };
  StreamRange(location, etag, offset, out.size(), take, std::move(stop));
}

void Client::StreamRange(const Location& location, const std::string& etag, uint64_t offset,
                         uint64_t bytes, const TakeBytes& take, std::stop_token stop) {
  if (bytes == 0) return;
  const auto is_short = [bytes](const HttpAnswer& answer) {
    return answer.status == kOutOfRange ||
           (answer.status != kPreconditionFailed && answer.taken != bytes);
  };
  // A store under load may answer like this about an intact object: compare with its size.
  const auto trouble_with = [&](const HttpAnswer& answer) -> std::string {
    if (!is_short(answer)) return "";
    const std::optional<Object> object = Head(location);
    if (!object || object->bytes < offset + bytes) return "";
    return fmt::format("HTTP status {} with {} of {} bytes from byte {} on; the object has {}",
                       answer.status, answer.taken, bytes, offset, object->bytes);
  };
  Request request{.method = "GET",
                  .location = location,
                  .headers = {{"range", fmt::format("bytes={}-{}", offset, offset + bytes - 1)}},
                  .take = take,
                  .take_at_most = bytes,
                  .expected = {kPreconditionFailed, kOutOfRange},
                  .trouble_with = trouble_with,
                  .stop = stop};
  if (!etag.empty()) request.headers.emplace_back("if-match", etag);
  const Answer answer = Send(request);
  if (answer.status == kPreconditionFailed)
    Fail(ErrorCode::kData, "{} was replaced while it was read: try again", location.Path());
  if (is_short(answer))
    Fail(ErrorCode::kData, "{} ends before byte {}: was it cut short?", location.Path(),
         offset + bytes);
}

std::optional<std::string> Client::Put(const Location& location, std::string_view body,
                                       const Condition& condition, std::stop_token stop) {
  Request request{.method = "PUT", .location = location, .body = body, .stop = stop};
  AddCondition(condition, &request.headers);
  if (condition.kind != Condition::Kind::kNone) request.expected = {kPreconditionFailed};
  // With a condition to match an object that does not exist.
  if (condition.kind == Condition::Kind::kMatches) request.expected.push_back(kNotFound);
  Answer answer = Send(request);
  if (answer.status == kNotFound && ParseError(answer.body).code == "NoSuchBucket")
    FailWith(request, answer);
  if (answer.status == kPreconditionFailed || answer.status == kNotFound) {
    // An earlier attempt, whose answer was lost, may have succeeded.
    if (!answer.repeated) return std::nullopt;
    const std::optional<Content> there = Get(location);
    if (!there || there->text != body) return std::nullopt;
    return there->etag;
  }
  return answer.Header("etag");
}

void Client::Delete(const Location& location) {
  Request request{.method = "DELETE", .location = location, .expected = {kNotFound}};
  const Answer answer = Send(request);
  if (answer.status == kNotFound && ParseError(answer.body).code == "NoSuchBucket")
    FailWith(request, answer);
}

template <typename Function>
auto Client::Parse(const Request& request, const Function& parse) {
  const Answer answer = Send(request);
  try {
    return parse(answer.body);
  } catch (const Error& error) {
    throw error.WithContext(
        fmt::format("{} {} at {}", request.method, request.location.Path(), settings_.endpoint));
  }
}

Client::Listing Client::List(const std::string& bucket, const std::string& prefix, bool delimiter) {
  Listing all;
  Request request{.method = "GET", .location = {.bucket = bucket, .key = {}}};
  for (std::string next;;) {
    request.query = {{"list-type", "2"}, {"prefix", prefix}, {"encoding-type", "url"}};
    if (delimiter) request.query.emplace_back("delimiter", "/");
    if (!next.empty()) request.query.emplace_back("continuation-token", next);
    ListPage page = Parse(request, ParseListPage);
    std::move(page.objects.begin(), page.objects.end(), std::back_inserter(all.objects));
    std::move(page.prefixes.begin(), page.prefixes.end(), std::back_inserter(all.prefixes));
    if (page.next.empty()) return all;
    next = page.next;
  }
}

bool Client::HasAny(const std::string& bucket, const std::string& prefix) {
  const ListPage page = Parse({.method = "GET",
                               .location = {.bucket = bucket, .key = {}},
                               .query = {{"list-type", "2"},
                                         {"prefix", prefix},
                                         {"encoding-type", "url"},
                                         {"max-keys", "1"}}},
                              ParseListPage);
  return !page.objects.empty();
}

std::string Client::BeginUpload(const Location& location) {
  return Parse({.method = "POST", .location = location, .query = {{"uploads", ""}}}, ParseUploadId);
}

std::string Client::PutPart(const Location& location, const std::string& upload, int number,
                            std::string_view body, std::stop_token stop) {
  return Send({.method = "PUT",
               .location = location,
               .query = {{"partNumber", std::to_string(number)}, {"uploadId", upload}},
               .body = body,
               .stop = stop})
      .Header("etag");
}

void Client::CompleteUpload(const Location& location, const std::string& upload,
                            const std::vector<std::string>& etags, uint64_t bytes) {
  const std::string body = CompletionOf(etags);
  Request request{.method = "POST",
                  .location = location,
                  .query = {{"uploadId", upload}},
                  .body = body,
                  .expected = {kNotFound}};
  const Answer answer = Send(request);
  if (answer.status != kNotFound) return;
  // A completed upload no longer exists: an earlier attempt may have succeeded.
  const std::optional<Object> object = answer.repeated ? Head(location) : std::optional<Object>();
  if (!object || object->bytes != bytes) FailWith(request, answer);
}

void Client::AbortUpload(const Location& location, const std::string& upload) {
  Send({.method = "DELETE",
        .location = location,
        .query = {{"uploadId", upload}},
        .expected = {kNotFound}});
}

std::vector<std::pair<Location, std::string>> Client::Uploads(const std::string& bucket,
                                                              const std::string& prefix) {
  std::vector<std::pair<Location, std::string>> all;
  Request request{.method = "GET", .location = {.bucket = bucket, .key = {}}};
  for (UploadsPage page;;) {
    request.query = {{"uploads", ""}, {"prefix", prefix}, {"encoding-type", "url"}};
    if (!page.next_key.empty()) {
      request.query.emplace_back("key-marker", page.next_key);
      request.query.emplace_back("upload-id-marker", page.next_id);
    }
    page = Parse(request, ParseUploadsPage);
    for (const auto& [key, id] : page.uploads)
      // Some stores list more than the prefix matches.
      if (key.starts_with(prefix)) all.emplace_back(Location{.bucket = bucket, .key = key}, id);
    if (page.next_key.empty()) return all;
  }
}

}  // namespace renzan::s3
