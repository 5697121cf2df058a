// renzan job show|explain|logs|cancel|preempt|checkpoint ID

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "renzan/cli/cluster/daemon_access.h"
#include "renzan/cli/jobs/verbs.h"
#include "renzan/cli/verbs.h"
#include "renzan/cluster/client/client.h"

namespace renzan {
namespace {

struct ActFlags {
  int64_t id = 0;
  std::string socket;
};

// Sends POST /v1/jobs/ID/ACTION and prints the job's state.
void AddActVerb(CLI::App& job, const std::string& action, const std::string& what,
                const std::string& footer) {
  CLI::App* verb = job.add_subcommand(action, what);
  const auto flags = std::make_shared<ActFlags>();
  verb->add_option("ID", flags->id, "As shown by `renzan jobs`")->required();
  AddSocketOption(*verb, flags->socket);
  verb->footer(footer);
  verb->callback([flags, action] {
    client::Client client(EndpointOf(flags->socket));
    const auto answer =
        nlohmann::json::parse(client.Post(fmt::format("/v1/jobs/{}/{}", flags->id, action), "{}"));
    fmt::print("job {}: {}\n", flags->id, answer.value("state", "asked to " + action));
  });
}

}  // namespace

void AddJobVerb(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("job", "Show one job, or stop it");
  verb->require_subcommand(1);
  AddJobShowVerb(*verb);
  AddJobExplainVerb(*verb);
  AddJobLogsVerb(*verb);
  AddActVerb(*verb, "cancel", "End a job for good",
             "Its workers get SIGTERM, and SIGKILL after its grace period.\nExample: renzan job "
             "cancel 12");
  AddActVerb(*verb, "preempt", "Stop a job with a checkpoint; it returns to the pending queue",
             "Example: renzan job preempt 12");
  AddActVerb(*verb, "checkpoint", "Request a checkpoint; the job continues",
             "Needs checkpoint.on_request: its workers get SIGUSR1.\n"
             "Example: renzan job checkpoint 12");
}

}  // namespace renzan
