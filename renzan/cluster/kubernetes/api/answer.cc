#include "renzan/cluster/kubernetes/api/answer.h"

#include <nlohmann/json.hpp>

#include "renzan/base/escape.h"

namespace renzan::cluster::kubernetes {
namespace {

constexpr size_t kMaxQuotedBytes = 300;

std::string Text(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string Quote(std::string body) {
  while (body.ends_with('\n')) body.pop_back();
  return Escape(ShortText(body, kMaxQuotedBytes));
}

// What to do next. `names_object`: the server knows the kind of the object it cannot find.
std::string Advice(const Asked& asked, int http_status, const std::string& reason,
                   bool names_object) {
  switch (http_status) {
    case 401:
      return "the credentials of " + asked.from + " are not accepted: renew them";
    case 403:
      return "grant this right to the user of " + asked.from +
             " (`kubectl auth can-i --list` shows those it has)";
    case 404:
      return names_object ? ""
                          : "does the server have this kind? Install its definition, or check the "
                            "server's address in " +
                                asked.from;
    case 409:
      return reason == "Conflict" ? "read the object again before another attempt" : "";
    case 410:
      return "list again";
    case 429:
      return "the server is too busy: try again later";
  }
  if (http_status >= 500)
    return asked.is_write ? "it may have been done all the same: read the object again"
                          : "try again, or look at the API server's log";
  if (http_status < 400) return "is it an API server? Check the address in " + asked.from;
  return "";
}

[[noreturn]] void FailStatus(const Asked& asked, int http_status, const std::string& reason,
                             const std::string& said, bool names_object) {
  const std::string advice = Advice(asked, http_status, reason, names_object);
  throw ApiError(
      http_status, reason,
      fmt::format("{}: {}{}{}{}{}{}", asked.what, http_status, reason.empty() ? "" : " ", reason,
                  said.empty() ? "" : ": ", said, advice.empty() ? "" : ": " + advice),
      asked.is_write && http_status >= 500);
}

}  // namespace

void FailWithStatus(const Asked& asked, int http_status, const Json& status) {
  const auto details = status.find("details");
  const bool names_object =
      details != status.end() && details->is_object() && !Text(*details, "name").empty();
  FailStatus(asked, http_status, Text(status, "reason"), Escape(Text(status, "message")),
             names_object);
}

void FailAsAnswered(const Asked& asked, int http_status, const std::string& body) {
  const Json json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && Text(json, "kind") == "Status") FailWithStatus(asked, http_status, json);
  FailStatus(asked, http_status, "", Quote(body), false);
}

Json ParseObject(const Asked& asked, const std::string& body) {
  Json json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) FailInvalid(asked, "not JSON: " + Quote(body));
  return json;
}

void FailInvalid(const Asked& asked, const std::string& why) {
  throw ApiError(
      ErrorCode::kUnavailable, 200, "InvalidAnswer",
      fmt::format("{}: the answer is invalid ({}): is it an API server? Check the address "
                  "in {}",
                  asked.what, why, asked.from),
      asked.is_write);
}

bool HasVersion(const Json& object) {
  if (!object.is_object()) return false;
  const auto metadata = object.find("metadata");
  return metadata != object.end() && metadata->is_object() &&
         !Text(*metadata, "resourceVersion").empty();
}

bool HasNameAndVersion(const Json& object) {
  return HasVersion(object) && !Text(object["metadata"], "name").empty();
}

}  // namespace renzan::cluster::kubernetes
