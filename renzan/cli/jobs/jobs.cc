// renzan jobs

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "renzan/base/clock.h"
#include "renzan/base/log.h"
#include "renzan/cli/cluster/cluster_access.h"
#include "renzan/cli/text/amounts_text.h"
#include "renzan/cli/text/one_of.h"
#include "renzan/cli/text/table.h"
#include "renzan/cli/verbs.h"
#include "renzan/cluster/core/engine/record_state.h"

namespace renzan {
namespace {

using Json = Document;

struct JobsFlags {
  ClusterFlags cluster;
  cluster::JobsQuery query;
  bool json = false;
};

// "4"; "3/8" for an elastic job that could have more; "0/4" for a pending job.
std::string Workers(const Json& job) {
  const int64_t now = job.at("workers"), most = job.at("max_workers");
  return now == most ? fmt::format("{}", now) : fmt::format("{}/{}", now, most);
}

// Pending jobs: since submission. Running jobs: since the start. Ended jobs: duration.
std::string Time(const Json& job, int64_t now) {
  const Json &started = job.at("started"), &ended = job.at("ended");
  if (job.at("state") == "pending") return DurationText(now - job.at("submitted").get<int64_t>());
  if (started.is_null()) return "";
  return DurationText((ended.is_null() ? now : ended.get<int64_t>()) - started.get<int64_t>());
}

std::string Progress(const Json& job) {
  const Json& progress = job.at("progress");
  if (!progress.is_object()) return "";
  const Json step = progress.value("step", Json()), steps = progress.value("steps", Json());
  if (!step.is_number() || !steps.is_number() || steps.get<double>() <= 0) return "";
  return fmt::format(" ({:.0f}%)", 100 * step.get<double>() / steps.get<double>());
}

// Where it runs, why it is pending, or how it ended.
std::string Where(const Json& job) {
  const std::string state = job.at("state");
  if (state == "pending") return job.at("reason").is_string() ? job.at("reason") : Json("");
  const Json& code = job.at("exit_code");
  if (!job.at("ended").is_null()) return code.is_null() ? "" : fmt::format("exit {}", code.dump());
  std::vector<std::string> nodes = job.at("nodes");
  if (nodes.size() > 4) {
    const size_t more = nodes.size() - 3;
    nodes.resize(3);
    nodes.push_back(fmt::format("{} more", more));
  }
  return fmt::format("{}{}", fmt::join(nodes, ","), Progress(job));
}

void PrintTable(const Json& jobs) {
  Table table({{"id", kRight},
               {"name"},
               {"queue"},
               {"user"},
               {"priority", kRight},
               {"state"},
               {"workers", kRight},
               {"gpus", kRight},
               {"time", kRight},
               {"where or why"}});
  const int64_t now = SystemClock().UnixMs();
  for (const Json& job : jobs) {
    const int64_t running = job.at("workers"), most = job.at("max_workers");
    const int64_t gpus = job.at("resources").at("gpu").get<int64_t>();
    table.Add({job.at("id").is_null() ? "" : job.at("id").dump(), job.at("name"), job.at("queue"),
               job.at("user"), job.at("priority").dump(), job.at("state"), Workers(job),
               fmt::format("{}", gpus * (running > 0 ? running : most)), Time(job, now),
               Where(job)});
  }
  fmt::print("{}", table.Text());
}

void Print(const JobsFlags& flags, const Json& answer) {
  if (flags.json) return PrintDocument(answer);
  const Json& jobs = answer.at("jobs");
  if (!jobs.empty()) PrintTable(jobs);
  if (const int64_t more = answer.at("more"); more > 0)
    LogInfo("{} older job(s) not listed: use --limit {}", more, flags.query.limit + more);
  if (const Json note = answer.value("note", Json()); note.is_string())
    LogInfo("{}", note.get<std::string>());
  if (!jobs.empty() || answer.at("more") != 0 || !answer.value("unreadable", Json()).empty())
    return;
  const bool filtered =
      !flags.query.queue.empty() || !flags.query.user.empty() || !flags.query.state.empty();
  LogInfo("no jobs{}{}", filtered ? " match" : "",
          flags.query.all ? ""
          : filtered      ? "; of those that have ended, only the last hour counts: see --all"
                          : " that are pending, running or ended in the last hour: see --all");
}

void List(const JobsFlags& flags) {
  const Json answer = BackendOf(flags.cluster)->ListJobs(flags.query);
  Print(flags, answer);
  FailForUnreadable(answer);
}

}  // namespace

void AddJobsVerb(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("jobs", "List jobs");
  const auto flags = std::make_shared<JobsFlags>();
  verb->add_flag("--all", flags->query.all, "Also jobs that ended more than an hour ago");
  verb->add_option("--limit", flags->query.limit, "How many ended jobs to list, newest first")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
      ->capture_default_str();
  verb->add_option("--queue", flags->query.queue, "Only jobs of this queue");
  verb->add_option("--user", flags->query.user,
                   "Only jobs of this user (on Kubernetes a namespace)");
  verb->add_option("--state", flags->query.state, "Only jobs in this state")
      ->check(OneOf({cluster::kRecordStates.begin(), cluster::kRecordStates.end()}));
  verb->add_flag("--json", flags->json, "Print JSON");
  AddClusterChoice(*verb, flags->cluster);
  verb->footer("Example: renzan jobs --queue vision --state pending");
  verb->callback([flags] { List(*flags); });
}

}  // namespace renzan
