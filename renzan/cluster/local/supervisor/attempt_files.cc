#include "renzan/cluster/local/supervisor/attempt_files.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan::cluster::local {
namespace {

using Json = nlohmann::ordered_json;

EndedBy EndedByOf(std::string text) {
  // As supervisors of earlier versions wrote it.
  std::replace(text.begin(), text.end(), ' ', '_');
  if (text == "node_lost") return EndedBy::kNodeFailed;
  for (int by = 0; EndedBy{by} < EndedBy::kLost; ++by)
    if (text == NameOf(EndedBy{by})) return EndedBy{by};
  Fail(ErrorCode::kData, "unknown end of an attempt: '{}'", text);
}

std::string Dump(const Json& json, Json::error_handler_t not_utf8) {
  return json.dump(2, ' ', false, not_utf8) + "\n";
}

template <typename T>
T Read(const std::string& path, const std::function<T(const Json&)>& parse) {
  try {
    return parse(Json::parse(ReadFile(path)));
  } catch (const Json::exception& error) {
    Fail(ErrorCode::kData, "{} is corrupt: {}", path, error.what());
  }
}

Json WorkerPlanToJson(const AttemptPlan::Worker& worker) {
  return {{"node", worker.node},
          {"local_rank", worker.local_rank},
          {"devices", worker.devices},
          {"cpu_millis", worker.cpu_millis},
          {"memory_mib", worker.memory_mib}};
}

AttemptPlan::Worker WorkerPlanFromJson(const Json& json) {
  return {.node = json.at("node"),
          .local_rank = json.at("local_rank"),
          .devices = json.at("devices"),
          .cpu_millis = json.at("cpu_millis"),
          .memory_mib = json.at("memory_mib")};
}

Json CgroupToJson(const Cgroup& group) {
  return {{"directory", group.directory}, {"v2", group.v2}};
}

Cgroup CgroupFromJson(const Json& json) {
  return {.directory = json.at("directory"), .v2 = json.at("v2")};
}

Json CgroupsToJson(const AttemptPlan::Cgroups& cgroups) {
  return {{"name", cgroups.name},
          {"hold", CgroupToJson(cgroups.hold)},
          {"cpu", CgroupToJson(cgroups.cpu)},
          {"memory", CgroupToJson(cgroups.memory)},
          {"devices", CgroupToJson(cgroups.devices)}};
}

AttemptPlan::Cgroups CgroupsFromJson(const Json& json) {
  return {.name = json.at("name"),
          .hold = CgroupFromJson(json.at("hold")),
          .cpu = CgroupFromJson(json.at("cpu")),
          .memory = CgroupFromJson(json.at("memory")),
          .devices = json.contains("devices") ? CgroupFromJson(json.at("devices")) : Cgroup{}};
}

AttemptPlan PlanFromJson(const Json& json) {
  AttemptPlan plan;
  plan.job = json.at("job");
  plan.attempt = json.at("attempt");
  plan.command = json.at("command");
  plan.environment = json.at("environment");
  plan.working_directory = json.at("working_directory");
  plan.run_dir = json.at("run_dir");
  plan.checkpoint_dir = json.at("checkpoint_dir");
  plan.uid = json.at("uid");
  plan.gid = json.at("gid");
  plan.grace_seconds = json.at("grace_seconds");
  plan.timeout_ms = json.at("timeout_ms");
  plan.log_bytes = json.at("log_bytes");
  plan.log_files = json.at("log_files");
  // Daemons of earlier versions did not write these.
  plan.enforce_memory = json.value("enforce_memory", false);
  plan.max_disk_mib = json.value("max_disk_mib", int64_t{0});
  plan.inherited_file = json.value("inherited_file", "");
  if (json.contains("cgroups")) plan.cgroups = CgroupsFromJson(json.at("cgroups"));
  plan.denied_devices = json.value("denied_devices", std::vector<dev_t>());
  plan.saves_on_stop = json.value("saves_on_stop", false);
  for (const Json& worker : json.at("workers")) plan.workers.push_back(WorkerPlanFromJson(worker));
  return plan;
}

AttemptEnd EndFromJson(const Json& json) {
  AttemptEnd end;
  end.by = EndedByOf(json.at("by"));
  end.exit_code = json.at("exit_code");
  end.message = json.at("message");
  end.started_ms = json.at("started_ms");
  end.ended_ms = json.at("ended_ms");
  // Supervisors of earlier versions did not write these.
  end.ran_ms = json.value("ran_ms", std::max<int64_t>(0, end.ended_ms - end.started_ms));
  end.killed_after_seconds = json.value("killed_after_seconds", 0.0);
  end.failed_on = json.value("failed_on", "");
  for (const Json& worker : json.at("workers"))
    end.workers.push_back({.exit_code = worker.at("exit_code"), .signal = worker.at("signal")});
  return end;
}

}  // namespace

const char* NameOf(EndedBy by) {
  switch (by) {
    case EndedBy::kItself:
      return "itself";
    case EndedBy::kRequest:
      return "request";
    case EndedBy::kTimeout:
      return "timeout";
    case EndedBy::kNodeFailed:
      return "node_failed";
    case EndedBy::kWorkerFailed:
      return "worker_failed";
    case EndedBy::kCannotStart:
      return "cannot_start";
    case EndedBy::kNeverStarted:
      return "void";
    case EndedBy::kLost:
      return "lost";
  }
  return "unknown";
}

AttemptPaths::AttemptPaths(const std::string& given) {
  directory = std::filesystem::absolute(given).lexically_normal().string();
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  plan = directory + "/plan.json";
  lock = directory + "/lock";
  started = directory + "/started.json";
  end = directory + "/end.json";
  spare_end = directory + "/end.spare";
  requests = directory + "/requests";
  wake = directory + "/wake";
  supervisor_log = directory + "/supervisor.log";
}

std::string AttemptPaths::Log(int rank) const {
  return fmt::format("{}/worker-{}.log", directory, rank);
}

std::string PlanToJson(const AttemptPlan& plan) {
  Json workers = Json::array();
  for (const AttemptPlan::Worker& worker : plan.workers)
    workers.push_back(WorkerPlanToJson(worker));
  const Json json = {{"job", plan.job},
                     {"attempt", plan.attempt},
                     {"command", plan.command},
                     {"environment", plan.environment},
                     {"inherited_file", plan.inherited_file},
                     {"working_directory", plan.working_directory},
                     {"run_dir", plan.run_dir},
                     {"checkpoint_dir", plan.checkpoint_dir},
                     {"uid", plan.uid},
                     {"gid", plan.gid},
                     {"grace_seconds", plan.grace_seconds},
                     {"saves_on_stop", plan.saves_on_stop},
                     {"timeout_ms", plan.timeout_ms},
                     {"log_bytes", plan.log_bytes},
                     {"log_files", plan.log_files},
                     {"enforce_memory", plan.enforce_memory},
                     {"max_disk_mib", plan.max_disk_mib},
                     {"cgroups", CgroupsToJson(plan.cgroups)},
                     {"denied_devices", plan.denied_devices},
                     {"workers", std::move(workers)}};
  try {
    return Dump(json, Json::error_handler_t::strict);
  } catch (const Json::exception&) {
    Fail(ErrorCode::kConfig,
         "job {}: its command, environment or directories are not UTF-8: change them", plan.job);
  }
}

AttemptPlan ReadPlan(const AttemptPaths& paths) {
  return Read<AttemptPlan>(paths.plan, PlanFromJson);
}

std::string StartToJson(const AttemptStart& start) {
  return Dump({{"worker_pids", start.worker_pids}, {"started_ms", start.started_ms}},
              Json::error_handler_t::strict);
}

std::optional<AttemptStart> ReadStart(const AttemptPaths& paths) {
  if (!FileExists(paths.started)) return std::nullopt;
  return Read<AttemptStart>(paths.started, [](const Json& json) {
    return AttemptStart{.worker_pids = json.at("worker_pids"), .started_ms = json.at("started_ms")};
  });
}

std::string EndToJson(const AttemptEnd& end) {
  Json workers = Json::array();
  for (const AttemptEnd::Worker& worker : end.workers)
    workers.push_back({{"exit_code", worker.exit_code}, {"signal", worker.signal}});
  // A message may contain arbitrary bytes.
  return Dump({{"by", NameOf(end.by)},
               {"exit_code", end.exit_code},
               {"message", end.message},
               {"started_ms", end.started_ms},
               {"ended_ms", end.ended_ms},
               {"ran_ms", end.ran_ms},
               {"killed_after_seconds", end.killed_after_seconds},
               {"failed_on", end.failed_on},
               {"workers", std::move(workers)}},
              Json::error_handler_t::replace);
}

std::optional<AttemptEnd> ReadEnd(const AttemptPaths& paths) {
  if (!FileExists(paths.end)) return std::nullopt;
  return Read<AttemptEnd>(paths.end, EndFromJson);
}

}  // namespace renzan::cluster::local
