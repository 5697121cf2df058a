// renzan cluster usage

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "renzan/cli/cluster/cluster_access.h"
#include "renzan/cli/cluster/verbs.h"
#include "renzan/cli/text/amounts_text.h"
#include "renzan/cli/text/table.h"

namespace renzan {
namespace {

using Json = Document;

struct UsageFlags {
  ClusterFlags cluster;
  bool json = false;
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

void PrintUsageOfUsers(const Json& users) {
  Table table({{"user"}, {"gpu-hours", kRight}, {"cost", kRight}});
  for (const Json& user : users)
    table.Add({user.at("name"), GpuHours(user.at("gpu_seconds")), Cost(user.at("cost"))});
  fmt::print("\n{}", table.Text());
}

void PrintUsageOfJobs(const Json& jobs) {
  Table table({{"job", kRight}, {"queue"}, {"user"}, {"gpu-hours", kRight}, {"cost", kRight}});
  for (const Json& job : jobs)
    table.Add({job.at("id").is_null() ? "" : job.at("id").dump(), job.at("queue"), job.at("user"),
               GpuHours(job.at("gpu_seconds")), Cost(job.at("cost"))});
  fmt::print("\n{}", table.Text());
}

void Print(const UsageFlags& flags, const Json& usage) {
  if (flags.json) return PrintDocument(usage);
  PrintUsageOfQueues(usage.at("queues"));
  PrintUsageOfUsers(usage.at("users"));
  PrintUsageOfJobs(usage.at("jobs"));
  if (const int64_t more = usage.at("more_jobs"); more > 0)
    fmt::print("{} older job(s) not listed: `renzan job show ID` shows the usage of one\n", more);
  if (const Json note = usage.value("note", Json()); note.is_string())
    fmt::print("\n{}\n", note.get<std::string>());
}

void Usage(const UsageFlags& flags) {
  const Json usage = BackendOf(flags.cluster)->Usage();
  Print(flags, usage);
  FailForUnreadable(usage);
}

}  // namespace

void AddClusterUsageVerb(CLI::App& cluster) {
  CLI::App* verb = cluster.add_subcommand(
      "usage", "Show GPU time and cost by queue, user and job, and loans between queues");
  const auto flags = std::make_shared<UsageFlags>();
  verb->add_flag("--json", flags->json, "Print JSON, in GPU-seconds");
  AddClusterChoice(*verb, flags->cluster);
  verb->footer("Example: renzan cluster usage");
  verb->callback([flags] { Usage(*flags); });
}

}  // namespace renzan
