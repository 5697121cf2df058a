// renzan job logs ID

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "renzan/base/error.h"
#include "renzan/cli/at_least.h"
#include "renzan/cli/cluster/cluster_access.h"
#include "renzan/cli/jobs/verbs.h"

namespace renzan {
namespace {

struct LogsFlags {
  std::string job;
  cluster::LogQuery query;
  ClusterFlags cluster;
};

void ShowLogs(const LogsFlags& flags) {
  BackendOf(flags.cluster)->ReadLog(flags.job, flags.query, [](std::string_view piece) {
    if (std::fwrite(piece.data(), 1, piece.size(), stdout) != piece.size() ||
        std::fflush(stdout) != 0)
      FailErrno(errno, "cannot write the log to stdout");
  });
}

}  // namespace

void AddJobLogsVerb(CLI::App& job) {
  CLI::App* verb = job.add_subcommand("logs", "Print a worker's output");
  const auto flags = std::make_shared<LogsFlags>();
  AddJobOption(*verb, flags->job);
  verb->add_flag("-f,--follow", flags->query.follow, "Follow the output until the job ends");
  verb->add_option("--worker", flags->query.worker, "Rank of the worker; default: 0")
      ->check(AtLeast(0));
  verb->add_option("--attempt", flags->query.attempt,
                   "Number of the attempt, from 0; default: the last")
      ->check(AtLeast(0));
  verb->add_option("--tail", flags->query.tail, "Only this many lines from the end")
      ->check(AtLeast(0));
  AddClusterChoice(*verb, flags->cluster);
  verb->footer(
      "On Kubernetes an attempt's output is there as long as its pods are.\n"
      "Example: renzan job logs 12 -f --worker 1 --tail 20");
  verb->callback([flags] { ShowLogs(*flags); });
}

}  // namespace renzan
