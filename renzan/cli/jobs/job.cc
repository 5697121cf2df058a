// renzan job show|explain|logs ID, cancel|preempt|checkpoint|hold|release ID... or those
// that match

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/cli/cluster/cluster_access.h"
#include "renzan/cli/jobs/job_choice.h"
#include "renzan/cli/jobs/verbs.h"
#include "renzan/cli/verbs.h"

namespace renzan {
namespace {

struct ActFlags {
  JobChoice jobs;
  ClusterFlags cluster;
  bool json = false;
};

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

// Whether it has ended or changed its state since it matched.
bool MatchesNoMore(cluster::Backend& backend, const JobChoice& choice, cluster::JobAction action,
                   const std::string& job) {
  try {
    return !Matches(choice, action, backend.ShowJob(job));
  } catch (const Error& error) {
    return error.code() == ErrorCode::kNoInput;  // removed
  }
}

// A job that cannot be acted on does not keep the others from it; the first such error is the exit
// code. One that no longer matches is no error.
void ActOnAll(const ActFlags& flags, cluster::JobAction action, const std::string& word) {
  const auto backend = BackendOf(flags.cluster);
  const bool by_match = flags.jobs.ByMatch();
  const auto [jobs, answer] = Choose(*backend, flags.jobs, action);
  if (jobs.size() == 1 && !by_match) {
    const Document done = Act(*backend, jobs[0], action);
    return flags.json ? PrintDocument(done) : PrintAsked(done, action, word);
  }
  if (jobs.empty() && !flags.json) LogInfo("no jobs match");
  Document all = Document::array();
  std::optional<Error> first;
  for (const std::string& job : jobs) {
    try {
      all.push_back(Act(*backend, job, action));
      if (!flags.json) PrintAsked(all.back(), action, word);
    } catch (const Error& error) {
      if (by_match && MatchesNoMore(*backend, flags.jobs, action, job)) continue;
      all.push_back({{"job", job}, {"error", error.what()}});
      if (first)
        LogError("{}", error.what());
      else
        first = error;
    }
  }
  if (flags.json) PrintDocument({{"jobs", all}});
  if (first) throw *first;
  if (!by_match) return;
  if (const Document note = answer.value("note", Document()); note.is_string())
    LogWarning("{}", note.get<std::string>());
  FailForUnreadable(answer);
}

void AddActVerb(CLI::App& job, cluster::JobAction action, const std::string& word,
                const std::string& what, const std::string& footer) {
  CLI::App* verb = job.add_subcommand(word, what);
  const auto flags = std::make_shared<ActFlags>();
  AddJobChoice(*verb, flags->jobs);
  verb->add_flag("--json", flags->json,
                 "Print JSON; several jobs, and those that match, as {\"jobs\": [...]}");
  AddClusterChoice(*verb, flags->cluster);
  verb->footer(footer);
  verb->callback([flags, action, word] { ActOnAll(*flags, action, word); });
}

}  // namespace

void AddJobOption(CLI::App& verb, std::string& job) {
  verb.add_option("ID", job, kJobHelp)->required();
}

void AddJobVerb(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("job", "Show one job, or stop jobs");
  verb->require_subcommand(1);
  AddJobShowVerb(*verb);
  AddJobExplainVerb(*verb);
  AddJobLogsVerb(*verb);
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
}

}  // namespace renzan
