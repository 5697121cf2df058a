// renzan nodes [cordon|drain|fail|restore NAME]

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "renzan/base/clock.h"
#include "renzan/base/counted.h"
#include "renzan/base/duration.h"
#include "renzan/base/error.h"
#include "renzan/cli/cluster/cluster_access.h"
#include "renzan/cli/text/amounts_text.h"
#include "renzan/cli/text/table.h"
#include "renzan/cli/verbs.h"

namespace renzan {
namespace {

using cluster::NodeAction;
using Json = Document;

struct NodesFlags {
  ClusterFlags cluster;
  std::string name, notice;
  bool json = false;
};

std::string State(const Json& node, int64_t now) {
  const std::string state = node.at("state");
  const Json& until = node.at("until");
  return until.is_null()
             ? state
             : fmt::format("{} until {}", state, LocalTimeText(until.get<int64_t>(), now));
}

// "12/32": used and available.
std::string Used(const Json& node, const char* kind, std::string text(const Json&)) {
  return fmt::format("{}/{}", text(node.at("used").at(kind)), text(node.at("capacity").at(kind)));
}

// Kubernetes may have nodes without a pool, and a daemon those of an earlier configuration.
std::string PoolOf(const Json& node) {
  const Json& pool = node.at("pool");
  return pool.is_null() ? "-" : pool.get<std::string>();
}

std::string Number(const Json& value) { return NumberText(value.get<double>()); }
std::string Memory(const Json& value) { return MebibytesText(value.get<int64_t>()); }

void List(const NodesFlags& flags) {
  const Json answer = BackendOf(flags.cluster)->ListNodes();
  if (flags.json) return PrintDocument(answer);
  Table table({{"name"},
               {"pool"},
               {"state"},
               {"cpu", kRight},
               {"memory", kRight},
               {"gpu", kRight},
               {"jobs"},
               {"labels"}});
  const int64_t now = SystemClock().UnixMs();
  for (const Json& node : answer.at("nodes")) {
    std::vector<std::string> jobs, labels;
    for (const Json& job : node.at("jobs")) jobs.push_back(job.dump());
    if (node.at("spot").get<bool>()) labels.push_back("spot");
    for (const auto& [key, value] : node.at("labels").items())
      labels.push_back(fmt::format("{}={}", key, value.get<std::string>()));
    table.Add({node.at("name"), PoolOf(node), State(node, now), Used(node, "cpu", Number),
               Used(node, "memory_mib", Memory), Used(node, "gpu", Number),
               fmt::format("{}", fmt::join(jobs, ",")), fmt::format("{}", fmt::join(labels, " "))});
  }
  fmt::print("{}", table.Text());
  for (const Json& node : answer.at("nodes"))
    if (const auto reason = node.find("reason"); reason != node.end() && reason->is_string())
      fmt::print("{} takes no new jobs: {}\n", node.at("name").get<std::string>(),
                 reason->get<std::string>());
  for (const Json& node : answer.at("nodes"))
    for (const Json& by : node.value("avoided_by", Json::array()))
      if (const int64_t until = by.at("until").get<int64_t>();
          until > now && node.at("state") == "ready")
        fmt::print(
            "{} is avoided by jobs of user {} until {} where others can serve them: {} of that "
            "user failed there soon after their start\n",
            node.at("name").get<std::string>(), by.at("user").get<std::string>(),
            LocalTimeText(until, now), Counted(by.at("failed_jobs").get<int64_t>(), "job"));
}

// Returns what has to happen before the action is complete.
std::string Act(const NodesFlags& flags, NodeAction action, double notice_seconds = -1) {
  return BackendOf(flags.cluster)->ChangeNode(flags.name, action, notice_seconds);
}

void Drain(const NodesFlags& flags) {
  double seconds = -1;
  if (!flags.notice.empty()) {
    const std::optional<double> notice = ParseDuration(flags.notice);
    if (!notice)
      Fail(ErrorCode::kUsage, "--notice {}: must be a duration such as 120s or 2m", flags.notice);
    seconds = *notice;
  }
  Act(flags, NodeAction::kDrain, seconds);
  fmt::print("{}: draining{}\n", flags.name,
             seconds < 0 ? "" : fmt::format(", goes away in {}", flags.notice));
}

CLI::App* AddActVerb(CLI::App& nodes, const char* action, const char* what, const char* footer,
                     std::shared_ptr<NodesFlags> flags) {
  CLI::App* verb = nodes.add_subcommand(action, what);
  verb->add_option("NAME", flags->name, "As shown by `renzan nodes`")->required();
  AddClusterChoice(*verb, flags->cluster);
  verb->footer(footer);
  return verb;
}

}  // namespace

void AddNodesVerb(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("nodes", "List nodes; cordon, drain or fail them");
  const auto flags = std::make_shared<NodesFlags>();
  verb->add_flag("--json", flags->json, "Print JSON");
  AddClusterChoice(*verb, flags->cluster);
  verb->require_subcommand(0, 1);
  verb->footer("Amounts are used/available.\nExample: renzan nodes");

  CLI::App* cordon =
      AddActVerb(*verb, "cordon", "Start no more workers on a node; running ones stay",
                 "Example: renzan nodes cordon own-3", flags);
  cordon->callback([flags] {
    Act(*flags, NodeAction::kCordon);
    fmt::print("{}: cordoned\n", flags->name);
  });

  CLI::App* drain = AddActVerb(
      *verb, "drain", "Empty a node: jobs that save when stopped move elsewhere, others may finish",
      "With --notice, all jobs must leave. On Kubernetes: a cordon, and a preemption of the jobs "
      "that save.\nExample: renzan nodes drain spot-3 --notice 120s",
      flags);
  drain->add_option("--notice", flags->notice,
                    "Like a spot interruption notice: the node goes away after this time (120s)");
  drain->callback([flags] { Drain(*flags); });

  CLI::App* fail =
      AddActVerb(*verb, "fail", "Simulate a node failure: its workers are killed without notice",
                 "Example: renzan nodes fail spot-3", flags);
  fail->callback([flags] {
    Act(*flags, NodeAction::kFail);
    fmt::print("{}: failed\n", flags->name);
  });

  CLI::App* restore = AddActVerb(*verb, "restore", "Bring a cordoned, drained or failed node back",
                                 "Example: renzan nodes restore spot-3", flags);
  restore->alias("uncordon");
  restore->callback([flags] {
    const std::string first = Act(*flags, NodeAction::kRestore);
    fmt::print("{}: ready{}\n", flags->name, first.empty() ? "" : " once " + first);
  });

  verb->callback([verb, flags] {
    if (verb->get_subcommands().empty()) List(*flags);
  });
}

}  // namespace renzan
