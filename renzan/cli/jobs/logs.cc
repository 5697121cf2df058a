// renzan job logs ID

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "renzan/base/error.h"
#include "renzan/cli/cluster/daemon_access.h"
#include "renzan/cli/jobs/verbs.h"
#include "renzan/cluster/client/client.h"

namespace renzan {
namespace {

struct LogsFlags {
  int64_t id = 0, worker = 0, attempt = -1, tail = -1;
  bool follow = false;
  std::string socket;
};

void ShowLogs(const LogsFlags& flags) {
  std::string target = fmt::format("/v1/jobs/{}/logs?worker={}", flags.id, flags.worker);
  if (flags.attempt >= 0) target += fmt::format("&attempt={}", flags.attempt);
  if (flags.tail >= 0) target += fmt::format("&tail={}", flags.tail);
  if (flags.follow) target += "&follow=1";
  client::Client(EndpointOf(flags.socket)).Stream(target, [](std::string_view piece) {
    if (std::fwrite(piece.data(), 1, piece.size(), stdout) != piece.size() ||
        std::fflush(stdout) != 0)
      FailErrno(errno, "cannot write the log to stdout");
  });
}

}  // namespace

void AddJobLogsVerb(CLI::App& job) {
  CLI::App* verb = job.add_subcommand("logs", "Print a worker's output");
  const auto flags = std::make_shared<LogsFlags>();
  verb->add_option("ID", flags->id, "As shown by `renzan jobs`")->required();
  verb->add_flag("-f,--follow", flags->follow, "Follow the output until the job ends");
  verb->add_option("--worker", flags->worker, "Rank of the worker; default: 0")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--attempt", flags->attempt, "Number of the attempt, from 0; default: the last")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--tail", flags->tail, "Only this many lines from the end")
      ->check(CLI::NonNegativeNumber);
  AddSocketOption(*verb, flags->socket);
  verb->footer("Example: renzan job logs 12 -f --worker 1 --tail 20");
  verb->callback([flags] { ShowLogs(*flags); });
}

}  // namespace renzan
