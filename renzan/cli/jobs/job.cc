// renzan job show|explain|logs|wait ID, cancel|preempt|checkpoint|hold|release|update ID... or
// those that match

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "renzan/cli/jobs/for_all_jobs.h"
#include "renzan/cli/jobs/verbs.h"
#include "renzan/cli/verbs.h"

namespace renzan {
namespace {

// Asks for the action on one job. Returns what to print.
Document Act(cluster::Backend& backend, const std::string& job, cluster::JobAction action) {
  const std::string state = backend.ActOn(job, action);
  return {{"job", job}, {"state", state.empty() ? Document() : Document(state)}};
}

const char* Remark(cluster::JobAction action) {
  switch (action) {
    case cluster::JobAction::kCheckpoint:
      return "; a checkpoint is requested";
    case cluster::JobAction::kHold:
      return "; held";
    case cluster::JobAction::kRelease:
      return "; released";
    case cluster::JobAction::kCancel:
    case cluster::JobAction::kPreempt:
      break;
  }
  return "";
}

void PrintAsked(const Document& done, cluster::JobAction action, const std::string& word) {
  const std::string job = done.at("job");
  if (done.at("state").is_null()) return fmt::print("job {}: asked to {}\n", job, word);
  fmt::print("job {}: {}{}\n", job, done.at("state").get<std::string>(), Remark(action));
}

void ActOnAll(const ManyJobsFlags& flags, cluster::JobAction action, const std::string& word) {
  ForAllJobs(flags, {.applies = WhereApplies(action),
                     .act = [action](cluster::Backend& backend,
                                     const std::string& job) { return Act(backend, job, action); },
                     .print = [&](const Document& done) { PrintAsked(done, action, word); }});
}

void AddActVerb(CLI::App& job, cluster::JobAction action, const std::string& word,
                const std::string& what, const std::string& footer) {
  CLI::App* verb = job.add_subcommand(word, what);
  const auto flags = std::make_shared<ManyJobsFlags>();
  AddManyJobsFlags(*verb, *flags);
  verb->footer(footer);
  verb->callback([flags, action, word] { ActOnAll(*flags, action, word); });
}

}  // namespace

void AddJobOption(CLI::App& verb, std::string& job) {
  verb.add_option("ID", job, kJobHelp)->required();
}

void AddJobVerb(CLI::App& app, int& exit_status) {
  CLI::App* verb = app.add_subcommand("job", "Show or await one job, or stop or change jobs");
  verb->require_subcommand(1);
  AddJobShowVerb(*verb);
  AddJobExplainVerb(*verb);
  AddJobLogsVerb(*verb);
  AddJobWaitVerb(*verb, exit_status);
  AddActVerb(*verb, cluster::JobAction::kCancel, "cancel", "End jobs for good",
             "Their workers get SIGTERM, and SIGKILL after the grace period.\n"
             "Example: renzan job cancel 12 13\n"
             "Example: renzan job cancel --queue vision --state pending");
  AddActVerb(*verb, cluster::JobAction::kPreempt, "preempt",
             "Stop jobs with a checkpoint; they return to the pending queue",
             "Example: renzan job preempt 12");
  AddActVerb(*verb, cluster::JobAction::kCheckpoint, "checkpoint",
             "Request a checkpoint; the jobs continue",
             "Needs checkpoint.on_request: their workers get SIGUSR1.\n"
             "Example: renzan job checkpoint 12");
  AddActVerb(*verb, cluster::JobAction::kHold, "hold",
             "Keep jobs from starting until they are released; what runs continues",
             "To stop it as well: renzan job preempt.\nExample: renzan job hold 12");
  AddActVerb(*verb, cluster::JobAction::kRelease, "release", "Let held jobs start",
             "Example: renzan job release --name 'sweep-*'");
  AddJobUpdateVerb(*verb);
}

}  // namespace renzan
