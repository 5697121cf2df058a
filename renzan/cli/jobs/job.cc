// renzan job show|explain|logs|cancel|preempt|checkpoint ID

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "renzan/cli/cluster/cluster_access.h"
#include "renzan/cli/jobs/verbs.h"
#include "renzan/cli/verbs.h"

namespace renzan {
namespace {

struct ActFlags {
  std::string job;
  ClusterFlags cluster;
  bool json = false;
};

// Asks for the action and prints the job's state.
void AddActVerb(CLI::App& job, cluster::JobAction action, const std::string& word,
                const std::string& what, const std::string& footer) {
  CLI::App* verb = job.add_subcommand(word, what);
  const auto flags = std::make_shared<ActFlags>();
  AddJobOption(*verb, flags->job);
  verb->add_flag("--json", flags->json, "Print JSON");
  AddClusterChoice(*verb, flags->cluster);
  verb->footer(footer);
  verb->callback([flags, action, word] {
    const std::string state = BackendOf(flags->cluster)->ActOn(flags->job, action);
    if (flags->json)
      return PrintDocument(
          {{"job", flags->job}, {"state", state.empty() ? Document() : Document(state)}});
    const char* asked = action == cluster::JobAction::kCheckpoint && !state.empty()
                            ? "; a checkpoint is requested"
                            : "";
    fmt::print("job {}: {}{}\n", flags->job, state.empty() ? "asked to " + word : state, asked);
  });
}

}  // namespace

void AddJobOption(CLI::App& verb, std::string& job) {
  verb.add_option("ID", job, "As shown by `renzan jobs`; on Kubernetes also NAME or NAMESPACE/NAME")
      ->required();
}

void AddJobVerb(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("job", "Show one job, or stop it");
  verb->require_subcommand(1);
  AddJobShowVerb(*verb);
  AddJobExplainVerb(*verb);
  AddJobLogsVerb(*verb);
  AddActVerb(*verb, cluster::JobAction::kCancel, "cancel", "End a job for good",
             "Its workers get SIGTERM, and SIGKILL after its grace period.\nExample: renzan job "
             "cancel 12");
  AddActVerb(*verb, cluster::JobAction::kPreempt, "preempt",
             "Stop a job with a checkpoint; it returns to the pending queue",
             "Example: renzan job preempt 12");
  AddActVerb(*verb, cluster::JobAction::kCheckpoint, "checkpoint",
             "Request a checkpoint; the job continues",
             "Needs checkpoint.on_request: its workers get SIGUSR1.\n"
             "Example: renzan job checkpoint 12");
}

}  // namespace renzan
