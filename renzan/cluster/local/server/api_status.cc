#include <unistd.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>

#include "renzan/cluster/core/engine/record_state.h"
#include "renzan/cluster/local/server/api_json.h"
#include "renzan/cluster/spec/cluster_documents.h"
#include "renzan/cluster/spec/snapshot_json.h"

namespace renzan::cluster::local {
namespace {

// How much is kept of the jobs that have ended, besides their directories.
Json HistoryJson(const ApiContext& context, Controller& controller,
                 const std::map<std::string, int64_t>& jobs) {
  int64_t ended = 0, bytes = 0;
  for (const auto& [state, count] : jobs)
    if (const auto known = RecordStateNamed(state); known && HasEnded(*known)) ended += count;
  for (const char* file : {"/state.db", "/state.db-wal"}) {
    std::error_code missing;
    const auto size = std::filesystem::file_size(context.state_dir + file, missing);
    if (!missing) bytes += static_cast<int64_t>(size);
  }
  const std::optional<TimeMs> first = controller.store().FirstEnd();
  return {{"ended_jobs", ended},
          {"first_ended", first ? Json(*first) : Json()},
          {"database_bytes", bytes},
          {"keep_ended_for_ms", controller.retention().keep_ended_ms},
          {"keep_output_for_ms", controller.retention().keep_output_ms}};
}

}  // namespace

ServerAnswer ClusterStatus(const ApiContext& context, const ApiRequest& request) {
  const Caller caller = WithGroups(context, request.caller);
  spec::Submitter you;
  int64_t max_priority = 0;
  std::map<std::string, int64_t> jobs;
  std::vector<PoolHistory> pools;
  std::string violation, trouble, disk;
  std::vector<std::pair<JobId, int64_t>> largest;
  std::vector<std::string> faults;
  Json history;
  const Snapshot snapshot = context.loop.Run([&](Controller& controller) {
    you = controller.access().SubmitterOf(caller);
    max_priority = controller.access().max_priority();
    jobs = controller.store().CountByState();
    history = HistoryJson(context, controller, jobs);
    pools = controller.pools().Histories();
    violation = controller.violation();
    faults = controller.faults();
    trouble = controller.trouble();
    disk = controller.disk().Trouble();
    largest = controller.disk().largest();
    return controller.snapshot();
  });
  Json use = spec::UseDocument(snapshot, max_priority);
  Json body = {
      {"version", RENZAN_VERSION},  {"pid", ::getpid()},
      {"uid", context.uid},         {"state_dir", context.state_dir},
      {"started", context.started}, {"tcp", context.tcp.empty() ? Json() : Json(context.tcp)},
      {"nodes", use["nodes"]}};
  body["you"] = {{"user", you.user},
                 {"groups", you.groups},
                 {"administrator", you.administrator},
                 {"max_priority", you.max_priority}};
  body["scheduling"] = {
      {"min_between_resizes_ms", context.scheduling.min_between_resizes_ms},
      {"max_checkpoint_interval_ms", context.scheduling.max_checkpoint_interval_ms},
      {"overdue_after_ms", context.scheduling.overdue_after_ms},
      {"service_levels_ms", context.scheduling.levels.thresholds_ms},
      {"gittins", context.scheduling.levels.gittins}};
  for (const char* state : kRecordStates) body["jobs"][state] = jobs[state];
  body["history"] = history;
  body["resources"] = use["resources"];
  body["worker_classes"] = Json::object();
  for (const auto& [name, request] : context.worker_classes)
    body["worker_classes"][name] = {{"cpu", request.cpu},
                                    {"memory", request.memory},
                                    {"gpu", request.gpu},
                                    {"other", request.other}};
  if (!disk.empty()) {
    body["disk"] = {{"nearly_full", disk}, {"largest_jobs", Json::array()}};
    for (const auto& [job, bytes] : largest)
      body["disk"]["largest_jobs"].push_back({{"id", job}, {"bytes", bytes}});
  }
  if (!trouble.empty()) body["trouble"] = trouble;
  if (!violation.empty()) body["violation"] = violation;
  if (!faults.empty()) body["faults"] = faults;
  for (size_t pool = 0; pool < pools.size(); ++pool) {
    const PoolRecord& seen = pools[pool].seen;
    use["pools"][pool]["node_hours"] = static_cast<double>(seen.node_ms) / 3'600'000;
    use["pools"][pool]["interruptions"] = seen.interruptions;
  }
  for (const char* part : {"pools", "queues", "users"}) body[part] = use[part];
  return {.text = BodyOf(body)};
}

ServerAnswer ClusterSnapshot(const ApiContext& context, const ApiRequest&) {
  return {.text = spec::SnapshotToJson(context.loop.Run(
              [](Controller& controller) { return controller.SnapshotForEstimates(); }))};
}

ServerAnswer ShutDown(const ApiContext& context, const ApiRequest& request) {
  context.loop.Run(
      [&](Controller& controller) { controller.access().RequireOperator(request.caller); });
  return {.text = "{}\n", .last = true, .sent = [&loop = context.loop] { loop.Stop(); }};
}

}  // namespace renzan::cluster::local
