// renzan cluster usage

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/cli/cluster/cluster_access.h"
#include "renzan/cli/cluster/verbs.h"
#include "renzan/cli/text/amounts_text.h"
#include "renzan/cli/text/moment.h"
#include "renzan/cli/text/one_of.h"
#include "renzan/cli/text/table.h"

namespace renzan {
namespace {

using Json = Document;

struct UsageFlags {
  ClusterFlags cluster;
  std::string from, to, by;
  bool json = false, csv = false;
};

std::string GpuHours(const Json& gpu_seconds) {
  return gpu_seconds.is_null() ? "" : NumberText(gpu_seconds.get<double>() / 3600);
}

std::string Cost(const Json& cost) { return cost.is_null() ? "" : NumberText(cost.get<double>()); }

void PrintUsageOfQueues(const Json& queues) {
  Table table(
      {{"queue"}, {"gpu-hours", kRight}, {"cost", kRight}, {"borrowed", kRight}, {"lent to"}});
  for (const Json& queue : queues) {
    std::vector<std::string> lent;
    for (const Json& loan : queue.at("lent"))
      lent.push_back(
          fmt::format("{} {}", loan.at("to").get<std::string>(), GpuHours(loan.at("gpu_seconds"))));
    table.Add({queue.at("name"), GpuHours(queue.at("gpu_seconds")), Cost(queue.at("cost")),
               GpuHours(queue.at("borrowed_gpu_seconds")),
               fmt::format("{}", fmt::join(lent, ", "))});
  }
  fmt::print("{}", table.Text());
}

void PrintUsageOfJobs(const Json& jobs) {
  Table table({{"job", kRight}, {"queue"}, {"user"}, {"gpu-hours", kRight}, {"cost", kRight}});
  for (const Json& job : jobs)
    table.Add({job.at("id").is_null() ? "" : job.at("id").dump(), job.at("queue"), job.at("user"),
               GpuHours(job.at("gpu_seconds")), Cost(job.at("cost"))});
  fmt::print("\n{}", table.Text());
}

void PrintFairShares(const Json& shares) {
  if (shares.empty()) return;
  Table table({{"queue"}, {"half-life", kRight}, {"user"}, {"used lately", kRight}});
  for (const Json& share : shares)
    for (const Json& user : share.at("users"))
      table.Add({share.at("queue"), DurationText(share.at("half_life_ms").get<int64_t>()),
                 user.at("name"),
                 fmt::format("{} {}-hours", GpuHours(user.at("seconds")),
                             share.at("of") == "gpu" ? "gpu" : "core")});
  fmt::print("\n{}", table.Text());
}

// One way to sum it up: a key of the answer, and the keys of each row that name it.
struct Grouping {
  const char* key;
  std::vector<std::pair<const char*, const char*>> names;  // in the answer, as a title
};

Grouping GroupingBy(const std::string& by) {
  if (by == "queue") return {"queues", {{"name", "queue"}}};
  if (by == "user") return {"users", {{"name", "user"}}};
  return {"queue_users", {{"queue", "queue"}, {"user", "user"}}};
}

void PrintGroups(const Json& usage, const Grouping& grouping) {
  std::vector<Table::Column> columns;
  for (const auto& [key, title] : grouping.names) columns.push_back({title});
  columns.push_back({"gpu-hours", kRight});
  columns.push_back({"cost", kRight});
  Table table(columns);
  for (const Json& row : usage.at(grouping.key)) {
    std::vector<std::string> cells;
    for (const auto& [key, title] : grouping.names) cells.push_back(row.at(key).get<std::string>());
    cells.push_back(GpuHours(row.at("gpu_seconds")));
    cells.push_back(Cost(row.at("cost")));
    table.Add(cells);
  }
  fmt::print("{}", table.Text());
}

// As in RFC 4180.
std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

void PrintCsv(const Json& usage, const Grouping& grouping) {
  std::string header;
  for (const auto& [key, title] : grouping.names) header += fmt::format("{},", title);
  fmt::print("{}gpu_seconds,cost\n", header);
  for (const Json& row : usage.at(grouping.key)) {
    for (const auto& [key, title] : grouping.names)
      fmt::print("{},", CsvField(row.at(key).get<std::string>()));
    fmt::print("{:.3f},{}\n", row.at("gpu_seconds").get<double>(), Cost(row.at("cost")));
  }
}

void PrintAll(const Json& usage) {
  PrintUsageOfQueues(usage.at("queues"));
  fmt::print("\n");
  PrintGroups(usage, GroupingBy("user"));
  PrintFairShares(usage.value("fair_shares", Json::array()));
  PrintUsageOfJobs(usage.at("jobs"));
  if (const int64_t more = usage.at("more_jobs"); more > 0)
    fmt::print("{} older job(s) not listed: `renzan job show ID` shows the usage of one\n", more);
}

void PrintSpan(const Json& usage, const UsageFlags& flags) {
  const auto text = [](const Json& time) { return LocalTimeText(time.get<int64_t>(), 0); };
  if (flags.from.empty())
    fmt::print("until {} (local time)\n", text(usage.at("to")));
  else
    fmt::print("from {} to {} (local time)\n", text(usage.at("from")), text(usage.at("to")));
}

void Print(const UsageFlags& flags, const Json& usage) {
  const bool one_table = flags.csv || !flags.by.empty();
  if (one_table && !usage.contains(GroupingBy(flags.by).key))
    Fail(ErrorCode::kUnavailable,
         "the daemon is of an earlier version and does not sum usage by queue and user: start it "
         "again (`renzan cluster down`, `renzan cluster up`)");
  if (flags.json) return PrintDocument(usage);
  if (flags.csv) return PrintCsv(usage, GroupingBy(flags.by));
  const bool dated = usage.contains("from");
  if (dated) PrintSpan(usage, flags);
  if (dated || !flags.by.empty())
    PrintGroups(usage, GroupingBy(flags.by));
  else
    PrintAll(usage);
  if (const Json note = usage.value("note", Json()); note.is_string())
    fmt::print("\n{}\n", note.get<std::string>());
}

std::optional<int64_t> MomentOf(const char* flag, const std::string& text) {
  if (text.empty()) return std::nullopt;
  const std::optional<int64_t> moment = ParseMoment(text);
  if (!moment) Fail(ErrorCode::kUsage, "{} {}: {}", flag, text, kMomentRule);
  return moment;
}

void Usage(const UsageFlags& flags) {
  const cluster::UsageQuery query{.from = MomentOf("--from", flags.from),
                                  .to = MomentOf("--to", flags.to)};
  const int64_t now = SystemClock().UnixMs();
  if (query.from && *query.from >= query.to.value_or(now))
    Fail(ErrorCode::kUsage, "--from {}: must be before {}", flags.from,
         flags.to.empty() ? "now" : "--to " + flags.to);
  const Json usage = BackendOf(flags.cluster)->Usage(query);
  Print(flags, usage);
  if (const Json since = usage.value("incomplete_before", Json()); since.is_number())
    LogWarning(
        "what was used before {} lacks the jobs that had been deleted by then: their use has no "
        "date",
        LocalTimeText(since.get<int64_t>(), now));
  FailForUnreadable(usage);
}

}  // namespace

void AddClusterUsageVerb(CLI::App& cluster) {
  CLI::App* verb = cluster.add_subcommand(
      "usage", "Show GPU time and cost by queue, user and job, and loans between queues");
  const auto flags = std::make_shared<UsageFlags>();
  verb->add_option("--from", flags->from,
                   "Only what was used from then on: 2026-01-31, or 2026-01-31T14:00, in the "
                   "local time zone or with Z or +01:00");
  verb->add_option("--to", flags->to, "Only what was used before then");
  verb->add_option("--by", flags->by, "One table: by queue, user, or queue-user")
      ->check(OneOf({"queue", "user", "queue-user"}));
  CLI::Option* json = verb->add_flag("--json", flags->json, "Print JSON, in GPU-seconds");
  verb->add_flag("--csv", flags->csv, "Print CSV, in GPU-seconds; by queue and user unless --by")
      ->excludes(json);
  AddClusterChoice(*verb, flags->cluster);
  verb->footer(
      "Example: renzan cluster usage\n"
      "Example: renzan cluster usage --from 2026-01-01 --to 2026-02-01 --by queue-user --csv");
  verb->callback([flags] { Usage(*flags); });
}

}  // namespace renzan
