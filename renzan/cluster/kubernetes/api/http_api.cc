#include "renzan/cluster/kubernetes/api/http_api.h"

#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/cluster/kubernetes/api/answer.h"
#include "renzan/cluster/kubernetes/api/event_lines.h"
#include "renzan/cluster/kubernetes/api/paths.h"
#include "renzan/cluster/kubernetes/api/wait.h"

namespace renzan::cluster::kubernetes {
namespace {

// A list that expires repeatedly takes longer to read than the server keeps its versions.
constexpr int kMaxListAttempts = 3;

const Kind kPod{"", "v1", "pods", "Pod"};

Asked AskedOf(const Session& session, const ApiRequest& request) {
  return {session.Describe(request), session.access().from, request.is_write()};
}

std::string SelectorQuery(const Selector& selector) {
  std::string query;
  if (!selector.labels.empty()) query += "&labelSelector=" + EscapeUrl(selector.labels);
  if (!selector.fields.empty()) query += "&fieldSelector=" + EscapeUrl(selector.fields);
  return query;
}

// Items of a list lack apiVersion and kind, which writes require.
Json WithKind(const Kind& kind, Json object) {
  object.emplace("apiVersion", ApiVersion(kind));
  object.emplace("kind", kind.name);
  return object;
}

std::string NameOf(const Json& object) {
  return object.at("metadata").at("name").get<std::string>();
}

}  // namespace

HttpApi::HttpApi(const Access& access, HttpApiOptions options, std::stop_token stop)
    : options_(options),
      session_(access, options.connect_timeout_seconds, options.max_answer_bytes, std::move(stop)) {
}

HttpAnswer HttpApi::Send(ApiRequest request) {
  bool renewed = false;
  for (int attempt = 0;; ++attempt) {
    HttpAnswer answer = session_.Send(request);
    if (answer.status >= 200 && answer.status < 300) return answer;
    if (answer.status == 401 && !renewed && session_.RenewCredentials()) {
      renewed = true;
      continue;
    }
    if (!WaitToRetry(answer, attempt))
      FailAsAnswered(AskedOf(session_, request), answer.status, answer.body);
  }
}

bool HttpApi::WaitToRetry(const HttpAnswer& answer, int attempt) {
  if ((answer.status != 429 && answer.status != 503) || !answer.retry_after_seconds) return false;
  if (attempt >= options_.max_retries) return false;
  if (*answer.retry_after_seconds > options_.longest_retry_wait_seconds) return false;
  WaitFor(*answer.retry_after_seconds, session_.stop());  // if stopped, the next attempt reports it
  return true;
}

Json HttpApi::Read(const std::string& target) {
  ApiRequest request{
      .method = "GET", .target = target, .timeout_seconds = options_.request_timeout_seconds};
  const HttpAnswer answer = Send(request);
  return ParseObject(AskedOf(session_, request), answer.body);
}

Json HttpApi::Write(const char* method, std::string target, const Json& body,
                    const char* content_type) {
  ApiRequest request{.method = method,
                     .target = std::move(target),
                     .body = body.dump(),
                     .content_type = content_type,
                     .timeout_seconds = options_.request_timeout_seconds};
  const HttpAnswer answer = Send(request);
  return ParseObject(AskedOf(session_, request), answer.body);
}

Json HttpApi::Get(const Kind& kind, const std::string& ns, const std::string& name,
                  const std::string& subresource) {
  return Read(ObjectPath(kind, ns, name, subresource));
}

Json HttpApi::List(const Kind& kind, const std::string& ns, const Selector& selector) {
  const std::string target = fmt::format("{}?limit={}{}", CollectionPath(kind, ns),
                                         options_.page_size, SelectorQuery(selector));
  for (int attempt = 1;; ++attempt) {
    try {
      return ListOnce(kind, target);
    } catch (const ApiError& error) {
      if (!error.is_expired() || attempt == kMaxListAttempts) throw;
    }
  }
}

Json HttpApi::ListOnce(const Kind& kind, const std::string& target) {
  Json all = {{"metadata", Json::object()}, {"items", Json::array()}};
  std::string next;
  do {
    ApiRequest request{.method = "GET",
                       .target = next.empty() ? target : target + "&continue=" + EscapeUrl(next)};
    Json page = Read(request.target);
    const auto items = page.find("items");
    if (!HasVersion(page) || items == page.end() || !(items->is_array() || items->is_null()))
      FailInvalid(AskedOf(session_, request), "not a list");
    for (Json& item : *items) {
      if (!HasNameAndVersion(item)) FailInvalid(AskedOf(session_, request), "an item without name");
      all["items"].push_back(WithKind(kind, std::move(item)));
    }
    all["metadata"]["resourceVersion"] = page["metadata"]["resourceVersion"];
    const Json& token = page["metadata"]["continue"];
    next = token.is_string() ? token.get<std::string>() : "";
  } while (!next.empty());
  return all;
}

Json HttpApi::Create(const Kind& kind, const std::string& ns, const Json& object) {
  return Write("POST", CollectionPath(kind, ns), WithKind(kind, object));
}

Json HttpApi::Replace(const Kind& kind, const std::string& ns, const Json& object,
                      const std::string& subresource) {
  CHECK_MSG(HasNameAndVersion(object), "Replace() without a resourceVersion overwrites changes");
  return Write("PUT", ObjectPath(kind, ns, NameOf(object), subresource), WithKind(kind, object));
}

Json HttpApi::MergePatch(const Kind& kind, const std::string& ns, const std::string& name,
                         const Json& patch, const std::string& subresource) {
  return Write("PATCH", ObjectPath(kind, ns, name, subresource), patch,
               "application/merge-patch+json");
}

void HttpApi::Delete(const Kind& kind, const std::string& ns, const std::string& name,
                     const std::string& uid, std::optional<int64_t> grace_seconds) {
  Json options = {
      {"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", "Background"}};
  if (!uid.empty()) options["preconditions"] = {{"uid", uid}};
  if (grace_seconds) options["gracePeriodSeconds"] = *grace_seconds;
  try {
    Write("DELETE", ObjectPath(kind, ns, name), options);
  } catch (const ApiError& error) {
    if (!error.is_not_found()) throw;
  }
}

void HttpApi::Bind(const std::string& ns, const std::string& pod, const std::string& uid,
                   const std::string& node) {
  Json binding = {{"apiVersion", "v1"},
                  {"kind", "Binding"},
                  {"metadata", {{"name", pod}, {"namespace", ns}}},
                  {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}}}};
  if (!uid.empty()) binding["metadata"]["uid"] = uid;
  Write("POST", ObjectPath(kPod, ns, pod, "binding"), binding);
}

void HttpApi::Watch(const Kind& kind, const std::string& ns, const Selector& selector,
                    const std::string& resource_version,
                    const std::function<void(std::string_view type, Json&& object)>& take) {
  ApiRequest request{
      .method = "GET",
      .target =
          fmt::format("{}?watch=1&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}{}",
                      CollectionPath(kind, ns), EscapeUrl(resource_version), options_.watch_seconds,
                      SelectorQuery(selector)),
      .timeout_seconds = options_.watch_seconds + options_.watch_grace_seconds};
  const Asked asked = AskedOf(session_, request);
  const auto take_line = [&](std::string_view line) {
    Json event = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!event.is_object() || !event["type"].is_string() || !event["object"].is_object())
      FailInvalid(asked, "not an event");
    const std::string type = event["type"].get<std::string>();
    Json& object = event["object"];
    if (type == "ERROR") {
      const Json& code = object["code"];
      FailWithStatus(asked, code.is_number_integer() ? code.get<int>() : 500, object);
    }
    if (type == "BOOKMARK" ? !HasVersion(object) : !HasNameAndVersion(object))
      FailInvalid(asked, "an event without a version");
    take(type, std::move(object));
  };
  EventLines lines(options_.max_answer_bytes);
  request.take = [&](std::string_view piece) {
    if (!lines.Add(piece, take_line))
      FailInvalid(asked, fmt::format("an event of more than {} bytes", options_.max_answer_bytes));
  };
  Send(request);
  if (lines.in_line())
    throw ApiError(0, "Disconnected",
                   asked.what + ": the stream ended in the middle of an event: try again", false);
}

ApiFactory MakeHttpApis(Access access, HttpApiOptions options) {
  return [access = std::move(access), options](std::stop_token stop) {
    return std::make_unique<HttpApi>(access, options, std::move(stop));
  };
}

}  // namespace renzan::cluster::kubernetes
