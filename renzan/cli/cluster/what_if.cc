// renzan cluster what-if --add-nodes POOL=N | --remove-node NAME | --quota QUEUE.gpu=N | --submit
// FILE

#include "renzan/cluster/simulate/what_if.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

#include "renzan/base/config/config.h"
#include "renzan/base/duration.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cli/cluster/cluster_access.h"
#include "renzan/cli/cluster/verbs.h"
#include "renzan/cli/text/amounts_text.h"
#include "renzan/cli/text/table.h"
#include "renzan/cli/working_directory.h"
#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/core/schedule.h"

namespace renzan {
namespace {

using namespace cluster;
using namespace cluster::simulate;
using Json = Document;

struct WhatIfFlags {
  std::vector<std::string> add_nodes, remove_nodes, quotas, submits;
  ClusterFlags cluster;
  std::string assume = "1h";
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
  const std::string queue = name.substr(0, name.size() - 4);
  SetGuarantee(snapshot, queue, kGpu, gpus);
}

void Submit(Snapshot& snapshot, const View& view, const std::string& file, Backend& backend) {
  const Submission submission{.job = JobText{ReadFile(file), file, {}},
                              .directory = WorkingDirectory()};
  const Job job = backend.Imagine(submission, view, snapshot);
  const std::string why = WhyInfeasible(snapshot, job);
  if (!why.empty()) Fail(ErrorCode::kConfig, "{} could never run: {}", file, why);
  AddJob(snapshot, job);
}

// Adds nodes first: a submitted job may need them.
void Change(const WhatIfFlags& flags, const View& view, Snapshot& snapshot, Backend& backend) {
  for (const std::string& text : flags.add_nodes) {
    const auto [pool, nodes] = ReadCount(text, "--add-nodes");
    AddNodes(snapshot, pool, nodes);
  }
  for (const std::string& node : flags.remove_nodes) RemoveNode(snapshot, node);
  for (const std::string& text : flags.quotas) SetQuota(snapshot, text);
  for (const std::string& file : flags.submits) Submit(snapshot, view, file, backend);
}

// Submitted jobs appear under their file names, in order: their ids are not known yet.
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
  const std::unique_ptr<Backend> backend = BackendOf(flags.cluster);
  const View view = backend->Observe();
  const Snapshot& snapshot = view.snapshot;
  const std::vector<WhatIfRow> rows = WhatIf(
      snapshot, [&](Snapshot& changed) { Change(flags, view, changed, *backend); },
      [&](const Snapshot& at) { return Schedule(at, view.scheduling); },
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
  verb->add_option(
          "--assume", flags->assume,
          "Assumed run time of jobs of which nothing is known; others are assumed to run for "
          "as long as similar jobs have")
      ->capture_default_str();
  verb->add_flag("--json", flags->json, "Print JSON");
  AddClusterChoice(*verb, flags->cluster);
  verb->footer(
      "Simulates the cluster once as it is and once changed; the cluster itself does not change.\n"
      "Example: renzan cluster what-if --add-nodes own=2 --submit big.yaml");
  verb->callback([flags] { Ask(*flags); });
}

}  // namespace renzan
