// renzan job show|explain ID

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "renzan/base/clock.h"
#include "renzan/base/counted.h"
#include "renzan/cli/cluster/cluster_access.h"
#include "renzan/cli/jobs/verbs.h"
#include "renzan/cli/text/amounts_text.h"
#include "renzan/cli/text/table.h"
#include "renzan/cluster/backend/explain_job.h"

namespace renzan {
namespace {

using Json = Document;

struct ShowFlags {
  std::string job;
  ClusterFlags cluster;
  bool json = false;
};

std::string TimeOrNothing(const Json& unix_ms, int64_t now) {
  return unix_ms.is_number() ? LocalTimeText(unix_ms.get<int64_t>(), now) : "";
}

std::string TextOf(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string PlacementText(const Json& placement) {
  std::vector<std::string> nodes;
  for (const Json& placed : placement)
    nodes.push_back(fmt::format("{}:{}", TextOf(placed.at("node")), placed.at("workers").dump()));
  return fmt::format("{}", fmt::join(nodes, " "));
}

void Line(const char* key, const std::string& value) {
  if (!value.empty()) fmt::print("{:<14}{}\n", key, value);
}

void PrintSummary(const Json& job, int64_t now) {
  const Json& per_worker = job.at("resources");
  const int64_t least = job.at("min_workers"), most = job.at("max_workers");
  fmt::print("job {}: {}\n", TextOf(job.at("id")), TextOf(job.at("name")));
  Line("state", TextOf(job.at("state")));
  Line("reason", TextOf(job.at("reason")));
  Line("queue", fmt::format("{}, priority {}", TextOf(job.at("queue")), job.at("priority").dump()));
  if (const Json timeout = job.value("timeout_ms", Json()); timeout.is_number())
    Line("time limit", DurationText(timeout.get<int64_t>()));
  Line("user", TextOf(job.at("user")));
  Line("workers", fmt::format("{} now, {}", job.at("workers").dump(),
                              least == most ? fmt::format("{} wanted", most)
                                            : fmt::format("{} to {} wanted", least, most)));
  Line("per worker", fmt::format("{}, {} memory, {}",
                                 Counted(NumberText(per_worker.at("cpu").get<double>()), "core"),
                                 MebibytesText(per_worker.at("memory_mib").get<int64_t>()),
                                 Counted(per_worker.at("gpu").dump(), "GPU")));
  Line("nodes", fmt::format("{}", fmt::join(job.at("nodes").get<std::vector<std::string>>(), " ")));
  Line("submitted", TimeOrNothing(job.at("submitted"), now));
  Line("started", TimeOrNothing(job.at("started"), now));
  Line("ended", TimeOrNothing(job.at("ended"), now));
  if (const std::string code = TextOf(job.at("exit_code")); !code.empty())
    Line("exit code", job.at("ended").is_null() ? code + " of an earlier attempt" : code);
  Line("counts", fmt::format("{}, {}, {}", Counted(job.at("attempts").dump(), "attempt"),
                             Counted(job.at("failures").dump(), "failure"),
                             Counted(job.at("preemptions").dump(), "preemption")));
}

void PrintProgress(const Json& progress) {
  if (!progress.is_object()) return;
  const auto number = [&](const char* key) { return progress.value(key, Json()); };
  std::string text = fmt::format("step {} of {}", number("step").dump(), number("steps").dump());
  if (number("samples_per_second").is_number())
    text += fmt::format(", {} samples/s", NumberText(number("samples_per_second").get<double>()));
  if (number("eta_seconds").is_number())
    text +=
        fmt::format(", {} left",
                    DurationText(static_cast<int64_t>(number("eta_seconds").get<double>() * 1000)));
  Line("progress", text);
}

// "checkpoint 2.4s, start 1.1s"
std::string MeasuredText(const Json& job) {
  std::vector<std::string> words;
  for (const auto& [key, word] :
       {std::pair("checkpoint_ms", "checkpoint"), {"restart_ms", "start"}})
    if (const Json ms = job.value(key, Json()); ms.is_number())
      words.push_back(fmt::format("{} {:.1f}s", word, ms.get<double>() / 1000));
  return fmt::format("{}", fmt::join(words, ", "));
}

void PrintPast(const Json& job, int64_t now) {
  Line("run dir", TextOf(job.value("run_dir", Json())));
  Line("checkpoints", TextOf(job.value("checkpoint_dir", Json())));
  Line("artifacts", TextOf(job.value("artifacts_dir", Json())));
  if (job.value("gpu_seconds", Json()).is_number())
    Line("used",
         fmt::format(
             "{} GPU-seconds{}", NumberText(job.at("gpu_seconds").get<double>()),
             job.at("cost").is_null() ? "" : ", cost " + NumberText(job.at("cost").get<double>())));
  Line("takes", MeasuredText(job));
  if (!job.at("attempts_list").empty()) {
    Table attempts({{"attempt", Table::Align::kRight},
                    {"state"},
                    {"started"},
                    {"ended"},
                    {"exit", Table::Align::kRight},
                    {"node:workers"},
                    {"message"}});
    for (const Json& attempt : job.at("attempts_list"))
      attempts.Add({attempt.at("number").dump(), TextOf(attempt.at("state")),
                    TimeOrNothing(attempt.at("started"), now),
                    TimeOrNothing(attempt.at("ended"), now), TextOf(attempt.at("exit_code")),
                    PlacementText(attempt.at("placement")), TextOf(attempt.at("message"))});
    fmt::print("\n{}", attempts.Text());
  }
  if (!job.at("events").empty()) {
    Table events({{"time"}, {"event"}, {"what"}});
    for (const Json& event : job.at("events"))
      events.Add({TimeOrNothing(event.at("time"), now), TextOf(event.at("kind")),
                  TextOf(event.at("text"))});
    fmt::print("\n{}", events.Text());
  }
}

void Show(const ShowFlags& flags) {
  const Json job = BackendOf(flags.cluster)->ShowJob(flags.job);
  if (flags.json) return PrintDocument(job);
  const int64_t now = SystemClock().UnixMs();
  PrintSummary(job, now);
  PrintProgress(job.at("progress"));
  Line("warning", TextOf(job.value("warning", Json())));
  PrintPast(job, now);
}

void PrintEstimate(const Json& job) {
  const Json median = job.value("estimated_start", Json());
  const Json p90 = job.value("estimated_start_p90", Json());
  const std::string rests_on = TextOf(job.value("estimate_rests_on", Json()));
  if (median.is_null()) {
    fmt::print("estimated start: unknown{}{}\n", rests_on.empty() ? "" : ": ", rests_on);
    return;
  }
  const int64_t now = SystemClock().UnixMs();
  const auto when = [now](const Json& time) {
    const int64_t start = time.get<int64_t>();
    return fmt::format("{} ({})", DurationText(start - now), LocalTimeText(start, now));
  };
  fmt::print(
      "estimated start: in about {}; {}\n", when(median),
      p90.is_null() ? "how late it may get is unknown" : "9 times out of 10 within " + when(p90));
  if (!rests_on.empty()) fmt::print("this rests on {}\n", rests_on);
}

void Explain(const ShowFlags& flags) {
  const Json job = cluster::ExplainJob(*BackendOf(flags.cluster), flags.job);
  if (flags.json) return PrintDocument(job);
  fmt::print("job {} ({}): {}\n", flags.job, TextOf(job.at("state")), TextOf(job.at("why")));
  for (const Json& change : job.value("would_start_with", Json::array()))
    fmt::print("would start: {}\n", TextOf(change));
  if (const std::string warning = TextOf(job.value("warning", Json())); !warning.empty())
    fmt::print("warning: {}\n", warning);
  if (const std::string note = TextOf(job.value("note", Json())); !note.empty())
    return fmt::print("{}\n", note);
  if (job.at("state") != "pending") return;
  if (job.value("queue_position", 0) > 0)
    fmt::print("position in the pending queue: {}\n", job.at("queue_position").dump());
  if (const std::string ahead = TextOf(job.value("ahead", Json())); !ahead.empty())
    fmt::print("ahead by fair share: {}\n", ahead);
  PrintEstimate(job);
}

void AddVerb(CLI::App& job, const char* name, const char* what, const char* footer,
             void (*run)(const ShowFlags&)) {
  CLI::App* verb = job.add_subcommand(name, what);
  const auto flags = std::make_shared<ShowFlags>();
  AddJobOption(*verb, flags->job);
  verb->add_flag("--json", flags->json, "Print JSON");
  AddClusterChoice(*verb, flags->cluster);
  verb->footer(footer);
  verb->callback([flags, run] { run(*flags); });
}

}  // namespace

void AddJobShowVerb(CLI::App& job) {
  AddVerb(job, "show", "Show all about a job: attempts, events, directories, cost",
          "--json also prints its specification and manifest.\nExample: renzan job show 12", Show);
}

void AddJobExplainVerb(CLI::App& job) {
  AddVerb(job, "explain",
          "Explain why a job is pending, what would start it, and when it may start",
          "Example: renzan job explain 12", Explain);
}

}  // namespace renzan
