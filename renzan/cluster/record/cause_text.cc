#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "renzan/base/counted.h"
#include "renzan/base/duration.h"
#include "renzan/cluster/record/causes.h"

namespace renzan::cluster::record {
namespace {

using Json = nlohmann::ordered_json;

// "node_leaving" to "node leaving".
std::string Words(std::string word) {
  std::replace(word.begin(), word.end(), '_', ' ');
  return word;
}

std::string Waited(const Json& cause) {
  return "waited " +
         FormatDuration(std::max<TimeMs>(0, cause.at("waited_ms").get<TimeMs>()) / kSecond);
}

// Why one job goes before the other.
std::string Comparison(const Json& cause, const std::string& reason) {
  const Json& other = cause.at("on_behalf_of");
  if (!other.contains("priority")) return "";
  if (reason == "preempted" || reason == "time_shared")  // the first term in which they differ
    for (const auto& [term, value] : other.items())
      if (cause.contains(term) && value.is_number() && value != cause[term])
        return fmt::format(", {} {} {} {}", term, value.get<int>(),
                           value > cause[term] ? "over" : "before", cause[term].get<int>());
  if (reason == "reclaimed")
    return fmt::format(", whose queue {} uses {} of {}", other["queue"]["name"].get<std::string>(),
                       other["queue"]["used_gpus"].get<int64_t>(),
                       Counted(other["queue"]["guaranteed_gpus"].get<int64_t>(), "guaranteed GPU"));
  return "";
}

std::string Leaving(const Json& cause) {
  std::string text;
  if (cause.contains("leaving"))
    for (const Json& node : cause["leaving"])
      text += fmt::format(", {}{}", node["node"].get<std::string>(),
                          node["until"].is_null() ? "" : " at " + node["until"].get<std::string>());
  return text;
}

std::string StopText(const Json& cause, const std::string& reason) {
  std::string text = Words(reason);
  if (!cause.at("on_behalf_of").is_null())
    text += " for " + JobText(cause["on_behalf_of"]) + Comparison(cause, reason);
  if (reason == "node_leaving") text += Leaving(cause);
  if (reason == "over_cap" && !cause["user"]["max_gpus"].is_null())
    text += fmt::format(": user {} uses {} of {}", cause["user"]["name"].get<std::string>(),
                        cause["user"]["used_gpus"].get<int64_t>(),
                        Counted(cause["user"]["max_gpus"].get<int64_t>(), "GPU"));
  return text;
}

std::string StartText(const Json& cause, const std::string& reason) {
  std::string text = reason == "reservation" ? "on its reservation" : reason;
  if (cause.contains("reserved_for"))
    for (const Json& holder : cause["reserved_for"])
      text += (&holder == &cause["reserved_for"][0] ? " on nodes reserved for " : ", ") +
              JobText(holder);
  return text + "; " + Waited(cause);
}

}  // namespace

std::string JobText(const Json& job) {
  const std::string id = std::to_string(job.at("id").get<int64_t>());
  if (!job.contains("name")) return "job " + id;
  const std::string ns = job.contains("namespace") ? job["namespace"].get<std::string>() + "/" : "";
  return ns + job["name"].get<std::string>() + " (" + id + ")";
}

std::string CauseText(const Json& decision) {
  const std::string kind = decision.at("decision").get<std::string>();
  const Json& cause = decision.at("cause");
  const std::string reason = cause.at("reason").get<std::string>();
  if (kind == "stop") return StopText(cause, reason);
  if (kind == "start") return StartText(cause, reason);
  std::string text = Words(reason);
  if (kind == "resize") {
    text += fmt::format(
        " from {} to {}{}", cause["from_workers"].get<int>(),
        Counted(cause["to_workers"].get<int>(), "worker"),
        cause["on_behalf_of"].is_null() ? "" : " for " + JobText(cause["on_behalf_of"]));
    if (cause.contains("leaving")) text += "; node leaving" + Leaving(cause);
  }
  if (kind == "checkpoint") text += " nodes";
  if (kind == "scale_out")
    text = fmt::format("{} more; {} jobs wait for nodes", decision["count"].get<int>(),
                       cause["waiting_jobs"].get<int64_t>());
  if (cause.contains("blocked_by")) text += " for " + JobText(cause["blocked_by"]);
  if (cause.contains("waited_ms")) text += "; " + Waited(cause);
  return text;
}

}  // namespace renzan::cluster::record
