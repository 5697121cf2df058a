// renzan cluster what-if --add-nodes POOL=N | --remove-node NAME | --quota QUEUE.gpu=N | --submit
// FILE

#include "renzan/cluster/simulate/what_if.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

#include "renzan/base/duration.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cli/cluster/daemon_access.h"
#include "renzan/cli/cluster/verbs.h"
#include "renzan/cli/text/amounts_text.h"
#include "renzan/cli/text/table.h"
#include "renzan/cluster/client/client.h"
#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/local/supervisor/job_user.h"
#include "renzan/cluster/spec/cluster_config.h"
#include "renzan/cluster/spec/snapshot_json.h"

namespace renzan {
namespace {

using namespace cluster;
using namespace cluster::simulate;
using Json = nlohmann::ordered_json;

struct WhatIfFlags {
  std::vector<std::string> add_nodes, remove_nodes, quotas, submits;
  std::string socket, assume = "1h";
  bool json = false;
};

// "own=3" into "own" and 3.
std::pair<std::string, int> ReadCount(const std::string& text, const char* option) {
  const size_t equals = text.rfind('=');
  int count = -1;
  const char* const end = text.data() + text.size();
  if (equals == text.npos || equals == 0 ||
      std::from_chars(text.data() + equals + 1, end, count).ptr != end || count < 0 ||
      count > 100'000)
    Fail(ErrorCode::kUsage, "{} {}: must be NAME=NUMBER, such as own=4", option, text);
  return {text.substr(0, equals), count};
}

void SetQuota(Snapshot& snapshot, const std::string& text) {
  const auto [name, gpus] = ReadCount(text, "--quota");
  if (!name.ends_with(".gpu"))
    Fail(ErrorCode::kUsage, "--quota {}: must be QUEUE.gpu=NUMBER", text);
  SetGuarantee(snapshot, name.substr(0, name.size() - 4), kGpu, gpus);
}

// As the daemon would predict it.
RunTimeQuantiles RunTimeOf(const spec::JobSpec& spec, const Snapshot& snapshot, const Job& job,
                           client::Client& daemon) {
  const int64_t gpus = snapshot.worker_requests[job.request].per_worker.gpu() * job.max_workers;
  const Json traits = {
      {"queue", spec.queue}, {"name", spec.name}, {"size", gpus > 0 ? gpus : job.max_workers}};
  return Json::parse(daemon.Post("/v1/run-time", traits.dump())).at("quantiles_ms");
}

void Submit(Snapshot& snapshot, const spec::WorkerClasses& worker_classes, const std::string& file,
            client::Client& daemon) {
  spec::JobSpec spec = spec::ReadJobSpec(ReadFile(file), file);
  spec::RoundUpToClass(worker_classes, file, spec);
  const std::string user = local::UserName(::geteuid());
  Job job = spec::MakeJob(snapshot, spec, user, 0, snapshot.now);
  job.run_time = RunTimeOf(spec, snapshot, job, daemon);
  const std::string why = WhyInfeasible(snapshot, job);
  if (!why.empty()) Fail(ErrorCode::kConfig, "{} could never run: {}", file, why);
  AddJob(snapshot, job);
}

// The daemon's worker classes.
spec::WorkerClasses WorkerClassesOf(const Json& status) {
  spec::WorkerClasses worker_classes;
  for (const auto& [name, request] : status.at("worker_classes").items())
    worker_classes[name] = {.cpu = request.at("cpu"),
                            .memory = request.at("memory"),
                            .gpu = request.at("gpu"),
                            .other = request.at("other")};
  return worker_classes;
}

// The daemon's scheduling options.
ScheduleOptions OptionsOf(const Json& status) {
  const Json& given = status.at("scheduling");
  ScheduleOptions options;
  options.min_between_resizes_ms = given.at("min_between_resizes_ms");
  options.max_checkpoint_interval_ms = given.at("max_checkpoint_interval_ms");
  options.overdue_after_ms = given.at("overdue_after_ms");
  options.levels.thresholds_ms = given.at("service_levels_ms").get<std::vector<TimeMs>>();
  options.levels.gittins = given.at("gittins");
  return options;
}

// Adds nodes first: a submitted job may need them.
void Change(const WhatIfFlags& flags, const spec::WorkerClasses& worker_classes, Snapshot& snapshot,
            client::Client& daemon) {
  for (const std::string& text : flags.add_nodes) {
    const auto [pool, nodes] = ReadCount(text, "--add-nodes");
    AddNodes(snapshot, pool, nodes);
  }
  for (const std::string& node : flags.remove_nodes) RemoveNode(snapshot, node);
  for (const std::string& text : flags.quotas) SetQuota(snapshot, text);
  for (const std::string& file : flags.submits) Submit(snapshot, worker_classes, file, daemon);
}

// Submitted jobs are named by their files, in order: their ids are not known yet.
void Print(const std::vector<WhatIfRow>& rows, const std::vector<std::string>& submits,
           TimeMs now) {
  Table table({{"job", Table::Align::kRight}, {"now"}, {"changed"}, {"difference"}});
  auto file = submits.begin();
  const auto when = [&](const std::optional<TimeMs>& start) {
    return start ? LocalTimeText(*start, now) : "never";
  };
  for (const WhatIfRow& row : rows) {
    const TimeMs sooner = row.before && row.after ? *row.before - *row.after : 0;
    table.Add({row.is_new ? *file++ : std::to_string(row.job), row.is_new ? "" : when(row.before),
               when(row.after),
               sooner == 0 ? ""
                           : fmt::format("{} {}", DurationText(std::abs(sooner)),
                                         sooner > 0 ? "sooner" : "later")});
  }
  fmt::print("{}", rows.empty() ? "no job is pending\n" : table.Text());
}

void PrintJson(const std::vector<WhatIfRow>& rows, const std::vector<std::string>& submits) {
  const auto when = [](const std::optional<TimeMs>& start) {
    return start ? Json(*start) : Json();
  };
  Json jobs = Json::array();
  auto file = submits.begin();
  for (const WhatIfRow& row : rows)
    jobs.push_back({{"id", row.is_new ? Json() : Json(row.job)},
                    {"submitted", row.is_new ? Json(*file++) : Json()},
                    {"before", when(row.before)},
                    {"after", when(row.after)}});
  fmt::print("{}\n", Json{{"jobs", jobs}}.dump(2));
}

void Ask(const WhatIfFlags& flags) {
  if (flags.add_nodes.empty() && flags.remove_nodes.empty() && flags.quotas.empty() &&
      flags.submits.empty())
    Fail(ErrorCode::kUsage,
         "give at least one change: --add-nodes, --remove-node, --quota or --submit");
  const std::optional<double> assume = ParseDuration(flags.assume);
  if (!assume || *assume <= 0 || *assume > 1e9)
    Fail(ErrorCode::kUsage, "--assume {}: not a duration such as 30m or 2h", flags.assume);
  client::Client client(EndpointOf(flags.socket));
  const Snapshot snapshot = spec::SnapshotFromJson(client.Get("/v1/snapshot"));
  const Json status = Json::parse(client.Get("/v1/status"));
  const ScheduleOptions options = OptionsOf(status);
  const std::vector<WhatIfRow> rows = WhatIf(
      snapshot, [&](Snapshot& changed) { Change(flags, WorkerClassesOf(status), changed, client); },
      [&](const Snapshot& at) { return Schedule(at, options); },
      static_cast<TimeMs>(*assume * 1000));
  if (flags.json)
    PrintJson(rows, flags.submits);
  else
    Print(rows, flags.submits, snapshot.now);
}

}  // namespace

void AddClusterWhatIfVerb(CLI::App& cluster) {
  CLI::App* verb =
      cluster.add_subcommand("what-if", "When pending jobs would start if the cluster changed");
  const auto flags = std::make_shared<WhatIfFlags>();
  verb->add_option("--add-nodes", flags->add_nodes, "Add nodes to a pool, ready immediately")
      ->type_name("POOL=N");
  verb->add_option("--remove-node", flags->remove_nodes, "Drain a node")->type_name("NAME");
  verb->add_option("--quota", flags->quotas, "Change a queue's guaranteed quota")
      ->type_name("QUEUE.gpu=N");
  verb->add_option("--submit", flags->submits, "Submit a job")->type_name("JOB.yaml");
  verb->add_option("--assume", flags->assume,
                   "Assumed run time of pending jobs; running jobs without an expected end are "
                   "assumed to run for as long as similar jobs have")
      ->capture_default_str();
  verb->add_flag("--json", flags->json, "Print JSON");
  AddSocketOption(*verb, flags->socket);
  verb->footer(
      "Simulates the cluster once as it is and once changed; the cluster itself does not change.\n"
      "Example: renzan cluster what-if --add-nodes own=2 --submit big.yaml");
  verb->callback([flags] { Ask(*flags); });
}

}  // namespace renzan
