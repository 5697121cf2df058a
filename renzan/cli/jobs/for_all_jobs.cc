#include "renzan/cli/jobs/for_all_jobs.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>

#include "renzan/base/error.h"
#include "renzan/base/log.h"

namespace renzan {
namespace {

// Whether it has ended or changed its state since it matched.
bool MatchesNoMore(cluster::Backend& backend, const JobChoice& choice, const Applies& applies,
                   const std::string& job) {
  try {
    return !Matches(choice, applies, backend.ShowJob(job));
  } catch (const Error& error) {
    return error.code() == ErrorCode::kNoInput;  // removed
  }
}

}  // namespace

void AddManyJobsFlags(CLI::App& verb, ManyJobsFlags& flags) {
  AddJobChoice(verb, flags.jobs);
  verb.add_flag("--json", flags.json,
                "Print JSON; several jobs, and those that match, as {\"jobs\": [...]}");
  AddClusterChoice(verb, flags.cluster);
}

void ForAllJobs(const ManyJobsFlags& flags, const JobOperation& operation) {
  const auto backend = BackendOf(flags.cluster);
  const bool by_match = flags.jobs.ByMatch();
  const auto [jobs, answer] = Choose(*backend, flags.jobs, operation.applies);
  if (jobs.size() == 1 && !by_match) {
    const Document done = operation.act(*backend, jobs[0]);
    return flags.json ? PrintDocument(done) : operation.print(done);
  }
  if (jobs.empty() && !flags.json) LogInfo("no jobs match");
  Document all = Document::array();
  std::optional<Error> first;
  for (const std::string& job : jobs) {
    try {
      all.push_back(operation.act(*backend, job));
      if (!flags.json) operation.print(all.back());
    } catch (const Error& error) {
      if (by_match && MatchesNoMore(*backend, flags.jobs, operation.applies, job)) continue;
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

}  // namespace renzan
