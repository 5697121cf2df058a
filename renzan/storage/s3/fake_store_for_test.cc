#include "renzan/storage/s3/fake_store_for_test.h"

#include <algorithm>
#include <charconv>
#include <pugixml.hpp>
#include <string_view>

#include "renzan/base/error.h"
#include "renzan/base/sha256.h"
#include "renzan/storage/s3/sigv4.h"

namespace renzan::s3 {
namespace {

constexpr size_t kMinPartBytes = 5 << 20;  // for all but the last part

// Depends only on the content, as MD5 does.
std::string EtagOf(const std::string& sha256) { return "\"" + sha256.substr(0, 32) + "\""; }
// CheckRequest() has verified this hash.
std::string EtagOf(const FakeRequest& request) {
  return EtagOf(request.Header("x-amz-content-sha256"));
}

std::string XmlEscape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '"') {
      escaped += "&quot;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string Element(const char* name, std::string_view text) {
  return fmt::format("<{}>{}</{}>", name, XmlEscape(text), name);
}

FakeAnswer Xml(const char* root, const std::string& inner) {
  return {.headers = {{"Content-Type", "application/xml"}},
          .body = fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{} "
                              "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{}</{}>",
                              root, inner, root)};
}

FakeAnswer ErrorOf(int status, const std::string& code) {
  FakeAnswer answer =
      Xml("Error", Element("Code", code) + Element("Message", "This went wrong & so on."));
  answer.status = status;
  return answer;
}

// A name in a list, encoded as servers do: a space becomes '+'.
std::string NameFor(const FakeRequest& request, const std::string& name) {
  if (request.Query("encoding-type") != "url") return name;
  std::string encoded;
  for (const char c : name) encoded += c == ' ' ? "+" : UriEncode({&c, 1}, true);
  return encoded;
}

size_t LimitOf(const FakeRequest& request, const char* name, size_t page) {
  const std::string limit = request.Query(name);
  return limit.empty() ? page : std::min<size_t>(page, std::stoul(limit));
}

// Parses "bytes=2-5".
std::pair<size_t, size_t> RangeOf(const std::string& header) {
  size_t first = 0, last = 0;
  const char *const begin = header.data() + sizeof "bytes=" - 1, *const end =
                                                                     header.data() + header.size();
  const char* const dash = std::from_chars(begin, end, first).ptr;
  CHECK(*dash == '-' && std::from_chars(dash + 1, end, last).ptr == end);
  return {first, last};
}

FakeAnswer AnswerOf(const Fault& fault) {
  FakeAnswer answer = ErrorOf(fault.status, fault.code);
  if (!fault.body.empty()) answer.body = fault.body;
  return answer;
}

}  // namespace

Environment FakeStore::environment() const {
  return [url = url()](const std::string& name) -> std::optional<std::string> {
    if (name == "AWS_ENDPOINT_URL") return url;
    if (name == "AWS_ACCESS_KEY_ID") return kAccessKey;
    if (name == "AWS_SECRET_ACCESS_KEY") return kSecretKey;
    if (name == "AWS_SESSION_TOKEN") return kSessionToken;
    return std::nullopt;
  };
}

void FakeStore::SetAccessKey(const std::string& key) {
  const std::lock_guard lock(mutex_);
  access_key_ = key;
}

void FakeStore::SetPlan(Plan plan) {
  const std::lock_guard lock(mutex_);
  plan_ = std::move(plan);
  requests_.clear();
}

void FakeStore::FailNext(Fault fault) {
  SetPlan([fault = std::move(fault)](int index, const std::string&, const std::string&) {
    return index == 0 ? fault : Fault::None();
  });
}

std::vector<FakeRequest> FakeStore::requests() {
  const std::lock_guard lock(mutex_);
  return requests_;
}

int FakeStore::CountOf(const std::string& method) {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(
      std::count_if(requests_.begin(), requests_.end(),
                    [&](const FakeRequest& request) { return request.method == method; }));
}

std::vector<std::string> FakeStore::keys() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> keys;
  for (const auto& [key, object] : objects_) keys.push_back(key);
  return keys;
}

std::optional<std::string> FakeStore::Content(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(key);
  if (found == objects_.end()) return std::nullopt;
  return found->second.content;
}

bool FakeStore::Holds(const std::string& key, std::string_view content) {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(key);
  return found != objects_.end() && found->second.content == content;
}

void FakeStore::Put(const std::string& key, const std::string& content) {
  const std::lock_guard lock(mutex_);
  objects_[key] = {content, EtagOf(Sha256Hex(content))};
}

void FakeStore::Erase(const std::string& key) {
  const std::lock_guard lock(mutex_);
  objects_.erase(key);
}

size_t FakeStore::unfinished_uploads() {
  const std::lock_guard lock(mutex_);
  return uploads_.size();
}

FakeAnswer FakeStore::Handle(const FakeRequest& request) {
  // before the lock is taken, since it hashes
  std::optional<FakeAnswer> wrong = CheckRequest(request);
  const std::lock_guard lock(mutex_);
  const int index = static_cast<int>(requests_.size());
  requests_.push_back(
      {request.method, request.target, request.path, request.query, request.headers, /*body=*/""});
  const Fault fault = plan_ ? plan_(index, request.method, request.target) : Fault::None();
  if (fault.kind == Fault::Kind::kCutBefore) return {.cut = FakeAnswer::Cut::kBefore};
  if (fault.kind == Fault::Kind::kAnswer) return AnswerOf(fault);
  if (!request.Header("authorization")
           .starts_with("AWS4-HMAC-SHA256 Credential=" + access_key_ + "/"))
    wrong = ErrorOf(403, "InvalidAccessKeyId");
  FakeAnswer answer =
      wrong ? *wrong : Execute(request, fault.kind != Fault::Kind::kIgnoreConditions);
  if (fault.kind == Fault::Kind::kAnswerAfter) return AnswerOf(fault);
  if (fault.kind == Fault::Kind::kCutAfter) answer.cut = FakeAnswer::Cut::kBefore;
  if (fault.kind == Fault::Kind::kCutInHead) answer.cut = FakeAnswer::Cut::kInHead;
  if (fault.kind == Fault::Kind::kCutInBody) answer.cut = FakeAnswer::Cut::kInBody;
  return answer;
}

std::optional<FakeAnswer> FakeStore::CheckRequest(const FakeRequest& request) const {
  if (request.Header("x-amz-content-sha256") != Sha256Hex(request.body))
    return ErrorOf(400, "XAmzContentSHA256Mismatch");
  if (request.Header("x-amz-date").empty()) return ErrorOf(403, "AccessDenied");
  if (!request.path.starts_with("/")) return ErrorOf(400, "InvalidURI");
  return std::nullopt;
}

FakeAnswer FakeStore::Execute(const FakeRequest& request, bool keep_conditions) {
  const size_t slash = request.path.find('/', 1);
  if (request.path.substr(1, slash - 1) != kBucket) return ErrorOf(404, "NoSuchBucket");
  const std::string key = slash == std::string::npos ? "" : request.path.substr(slash + 1);
  const std::string& method = request.method;
  if (key.empty() && method == "GET")
    return request.query.contains("uploads") ? ListUploads(request) : List(request);
  if (key.empty()) return ErrorOf(405, "MethodNotAllowed");
  if (request.query.contains("uploads") || request.query.contains("uploadId"))
    return OfUpload(request, key);
  if (method == "GET" || method == "HEAD") return Read(request, key, keep_conditions);
  if (method == "DELETE") {
    objects_.erase(key);
    return {.status = 204};
  }
  if (method != "PUT") return ErrorOf(405, "MethodNotAllowed");
  if (keep_conditions)
    if (const std::optional<FakeAnswer> failed = CheckConditions(request, key)) return *failed;
  Object& object = objects_[key];
  object = {request.body, EtagOf(request)};
  return {.headers = {{"ETag", object.etag}}};
}

std::optional<FakeAnswer> FakeStore::CheckConditions(const FakeRequest& request,
                                                     const std::string& key) const {
  const auto found = objects_.find(key);
  const std::string etag = request.Header("if-match");
  if (!etag.empty() && found == objects_.end()) return ErrorOf(404, "NoSuchKey");
  if (!etag.empty() && etag != found->second.etag) return ErrorOf(412, "PreconditionFailed");
  if (request.Header("if-none-match") == "*" && found != objects_.end())
    return ErrorOf(412, "PreconditionFailed");
  return std::nullopt;
}

FakeAnswer FakeStore::Read(const FakeRequest& request, const std::string& key,
                           bool keep_conditions) const {
  const auto found = objects_.find(key);
  if (found == objects_.end()) return ErrorOf(404, "NoSuchKey");
  const Object& object = found->second;
  if (keep_conditions)
    if (const std::optional<FakeAnswer> failed = CheckConditions(request, key)) return *failed;
  FakeAnswer answer{.headers = {{"ETag", object.etag}}};
  const std::string range = request.Header("range");
  if (range.empty()) {
    answer.body = object.content;
    return answer;
  }
  const auto [first, last] = RangeOf(range);
  if (first >= object.content.size()) return ErrorOf(416, "InvalidRange");
  answer.status = 206;
  answer.body = object.content.substr(first, last - first + 1);
  return answer;
}

FakeAnswer FakeStore::List(const FakeRequest& request) const {
  CHECK(request.Query("list-type") == "2");
  const std::string prefix = request.Query("prefix"), delimiter = request.Query("delimiter");
  // Keys and common prefixes, in one order.
  std::map<std::string, const Object*> entries;
  for (auto i = objects_.lower_bound(prefix); i != objects_.end() && i->first.starts_with(prefix);
       ++i) {
    const size_t end =
        delimiter.empty() ? std::string::npos : i->first.find(delimiter, prefix.size());
    if (end == std::string::npos) {
      entries[i->first] = &i->second;
    } else {
      entries[i->first.substr(0, end + delimiter.size())] = nullptr;
    }
  }
  const std::string token = request.Query("continuation-token");
  auto entry = token.empty() ? entries.begin() : entries.upper_bound(token.substr(1));
  std::string inner = Element("EncodingType", request.Query("encoding-type")), last;
  for (size_t left = LimitOf(request, "max-keys", page_); left > 0 && entry != entries.end();
       --left, ++entry) {
    last = entry->first;
    const std::string name = NameFor(request, last);
    inner += entry->second == nullptr
                 ? fmt::format("<CommonPrefixes>{}</CommonPrefixes>", Element("Prefix", name))
                 : fmt::format("<Contents>{}{}{}</Contents>", Element("Key", name),
                               Element("Size", std::to_string(entry->second->content.size())),
                               Element("ETag", entry->second->etag));
  }
  const bool truncated = entry != entries.end();
  inner += Element("IsTruncated", truncated ? "true" : "false");
  // The token is never empty, even on the first page, and holds a character that must be encoded in
  // a query.
  if (truncated) inner += Element("NextContinuationToken", "+" + last);
  return Xml("ListBucketResult", inner);
}

FakeAnswer FakeStore::ListUploads(const FakeRequest& request) const {
  std::map<std::pair<std::string, std::string>, bool> entries;
  for (const auto& [id, upload] : uploads_)
    if (upload.key.starts_with(request.Query("prefix"))) entries[{upload.key, id}] = true;
  auto entry = entries.begin();
  if (!request.Query("key-marker").empty())
    entry = entries.upper_bound({request.Query("key-marker"), request.Query("upload-id-marker")});
  std::string inner = Element("EncodingType", request.Query("encoding-type"));
  for (size_t left = page_; left > 0 && entry != entries.end(); --left, ++entry) {
    const std::string key = NameFor(request, entry->first.first), &id = entry->first.second;
    inner += fmt::format("<Upload>{}{}</Upload>", Element("Key", key), Element("UploadId", id));
    if (left == 1 && std::next(entry) != entries.end())
      inner += Element("IsTruncated", "true") + Element("NextKeyMarker", key) +
               Element("NextUploadIdMarker", id);
  }
  return Xml("ListMultipartUploadsResult", inner);
}

FakeAnswer FakeStore::OfUpload(const FakeRequest& request, const std::string& key) {
  if (request.query.contains("uploads") && request.method == "POST") {
    const std::string id = fmt::format("upload/{:04}+", ++last_upload_);
    uploads_[id].key = key;
    return Xml("InitiateMultipartUploadResult", Element("UploadId", id));
  }
  const auto upload = uploads_.find(request.Query("uploadId"));
  if (upload == uploads_.end() || upload->second.key != key) return ErrorOf(404, "NoSuchUpload");
  if (request.method == "DELETE") {
    uploads_.erase(upload);
    return {.status = 204};
  }
  if (request.method == "PUT") {
    Object& part = upload->second.parts[std::stoi(request.Query("partNumber"))];
    part = {request.body, EtagOf(request)};
    return {.headers = {{"ETag", part.etag}}};
  }
  CHECK(request.method == "POST");
  FakeAnswer answer = Complete(request, upload->second);
  if (answer.status == 200) uploads_.erase(upload);
  return answer;
}

FakeAnswer FakeStore::Complete(const FakeRequest& request, Upload& upload) {
  pugi::xml_document document;
  if (!document.load_buffer(request.body.data(), request.body.size()))
    return ErrorOf(400, "MalformedXML");
  Object whole;
  std::string etags;
  int last = 0;
  const auto parts = document.child("CompleteMultipartUpload").children("Part");
  for (const pugi::xml_node node : parts) {
    const int number = node.child("PartNumber").text().as_int();
    if (number <= last) return ErrorOf(400, "InvalidPartOrder");
    const auto part = upload.parts.find(number);
    if (part == upload.parts.end() || part->second.etag != node.child_value("ETag"))
      return ErrorOf(400, "InvalidPart");
    if (node.next_sibling() && part->second.content.size() < kMinPartBytes)
      return ErrorOf(400, "EntityTooSmall");
    whole.content += part->second.content;
    etags += part->second.etag;
    last = number;
  }
  if (last == 0) return ErrorOf(400, "MalformedXML");
  const std::string hash = EtagOf(Sha256Hex(etags));
  whole.etag = fmt::format("{}-{}\"", hash.substr(0, hash.size() - 1), upload.parts.size());
  const FakeAnswer answer = Xml("CompleteMultipartUploadResult", Element("ETag", whole.etag));
  objects_[upload.key] = std::move(whole);
  return answer;
}

}  // namespace renzan::s3
