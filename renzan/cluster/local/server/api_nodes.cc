#include <nlohmann/json.hpp>

#include "renzan/cluster/local/server/api_json.h"
#include "renzan/cluster/spec/cluster_documents.h"

namespace renzan::cluster::local {
namespace {

// Nothing for null or a missing key.
std::optional<double> Seconds(const Json& body, const char* key) {
  const auto at = body.find(key);
  if (at == body.end() || at->is_null()) return std::nullopt;
  if (!at->is_number() || at->get<double>() < 0 || at->get<double>() > 1e10)
    throw BadRequest(fmt::format("{} must be a nonnegative number of seconds", key));
  return at->get<double>();
}

}  // namespace

ServerAnswer ListNodes(const ApiContext& context, const ApiRequest&) {
  const Snapshot snapshot =
      context.loop.Run([](Controller& controller) { return controller.snapshot(); });
  return {.text = BodyOf(spec::NodesDocument(snapshot))};
}

ServerAnswer ChangeNode(const ApiContext& context, const ApiRequest& request) {
  const std::string& name = request.path.at(2);
  const std::string& verb = request.path.at(3);
  const auto notice = Seconds(ParseBody(request), "notice_seconds");
  std::string waits_until;
  context.loop.Run([&](Controller& controller) {
    if (verb == "fail") {
      controller.FailNode(name, request.caller);
    } else if (verb == "restore") {
      waits_until = controller.Restore(name, request.caller);
    } else if (verb == "cordon") {
      controller.Cordon(name, request.caller);
    } else {
      std::optional<TimeMs> notice_ms;
      if (notice) notice_ms = static_cast<TimeMs>(*notice * 1000);
      controller.Drain(name, notice_ms, request.caller);
    }
  });
  const Json answer = {{"done", waits_until.empty()},
                       {"waits_until", waits_until.empty() ? Json() : Json(waits_until)}};
  return {.text = BodyOf(answer)};
}

ServerAnswer OverrideUserQuota(const ApiContext& context, const ApiRequest& request) {
  const Json body = ParseBody(request);
  const auto gpus = body.find("max_gpus");
  const auto seconds = Seconds(body, "for_seconds");
  if (gpus == body.end() || !gpus->is_number_unsigned() || !seconds)
    throw BadRequest("expected max_gpus (a nonnegative integer) and for_seconds");
  const auto max_gpus = static_cast<int64_t>(
      std::min<uint64_t>(gpus->get<uint64_t>(), static_cast<uint64_t>(kUnlimited)));
  context.loop.Run([&](Controller& controller) {
    controller.OverrideQuota(request.path.at(2), max_gpus, static_cast<TimeMs>(*seconds * 1000),
                             request.caller);
  });
  return {.text = "{}\n"};
}

}  // namespace renzan::cluster::local
