// renzan jobs

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "renzan/base/clock.h"
#include "renzan/base/log.h"
#include "renzan/cli/cluster/daemon_access.h"
#include "renzan/cli/text/amounts_text.h"
#include "renzan/cli/text/table.h"
#include "renzan/cli/verbs.h"
#include "renzan/cluster/client/client.h"
#include "renzan/cluster/core/engine/record_state.h"

namespace renzan {
namespace {

using Json = nlohmann::ordered_json;

struct JobsFlags {
  std::string socket, queue, user, state;
  int64_t limit = 1000;
  bool all = false, json = false;
};

constexpr int64_t kMaxPage = 1000;  // the daemon's limit

// `before`: only jobs with lower ids, unless it is 0.
std::string Target(const JobsFlags& flags, int64_t limit, int64_t before) {
  std::string target = fmt::format("/v1/jobs?all={}&limit={}", flags.all ? 1 : 0, limit);
  if (before != 0) target += fmt::format("&before={}", before);
  for (const auto& [key, value] :
       {std::pair("queue", flags.queue), {"user", flags.user}, {"state", flags.state}})
    if (!value.empty()) target += fmt::format("&{}={}", key, client::EscapeUrl(value));
  return target;
}

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
    table.Add({job.at("id").dump(), job.at("name"), job.at("queue"), job.at("user"),
               job.at("priority").dump(), job.at("state"), Workers(job),
               fmt::format("{}", gpus * (running > 0 ? running : most)), Time(job, now),
               Where(job)});
  }
  fmt::print("{}", table.Text());
}

// Page by page, so as not to block the daemon.
Json Ask(const JobsFlags& flags) {
  client::Client client(EndpointOf(flags.socket));
  std::map<int64_t, Json> jobs;
  int64_t wanted = flags.limit, before = 0, more = 0;
  do {
    const Json page = Json::parse(client.Get(Target(flags, std::min(wanted, kMaxPage), before)));
    more = page.at("more");
    const size_t known = jobs.size();
    for (const Json& job : page.at("jobs")) {
      const int64_t id = job.at("id");
      jobs[id] = job;
      if (job.at("ended").is_null()) continue;
      before = before == 0 ? id : std::min(before, id);
      --wanted;
    }
    if (jobs.size() == known) break;
  } while (wanted > 0 && more > 0);
  Json all = {{"jobs", Json::array()}, {"more", more}};
  for (auto& [id, job] : jobs) all["jobs"].push_back(std::move(job));
  return all;
}

void List(const JobsFlags& flags) {
  const Json answer = Ask(flags);
  if (flags.json) return PrintAnswer(answer.dump());
  const Json& jobs = answer.at("jobs");
  if (!jobs.empty()) PrintTable(jobs);
  if (const int64_t more = answer.at("more"); more > 0)
    LogInfo("{} older job(s) not listed: use --limit {}", more, flags.limit + more);
  if (!jobs.empty() || answer.at("more") != 0) return;
  LogInfo("no jobs{}",
          flags.all ? "" : " that are pending, running or ended in the last hour: see --all");
}

}  // namespace

void AddJobsVerb(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("jobs", "List jobs");
  const auto flags = std::make_shared<JobsFlags>();
  verb->add_flag("--all", flags->all, "Also jobs that ended more than an hour ago");
  verb->add_option("--limit", flags->limit, "How many ended jobs to list, newest first")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
      ->capture_default_str();
  verb->add_option("--queue", flags->queue, "Only jobs of this queue");
  verb->add_option("--user", flags->user, "Only jobs of this user");
  verb->add_option(
      "--state", flags->state,
      fmt::format("Only jobs in this state: {}", fmt::join(cluster::kRecordStates, ", ")));
  verb->add_flag("--json", flags->json, "Print JSON");
  AddSocketOption(*verb, flags->socket);
  verb->footer("Example: renzan jobs --queue vision --state pending");
  verb->callback([flags] { List(*flags); });
}

}  // namespace renzan
