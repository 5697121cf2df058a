// renzan job update ID... or those that match

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/cli/jobs/for_all_jobs.h"
#include "renzan/cli/jobs/verbs.h"
#include "renzan/cli/shorthand.h"
#include "renzan/cluster/spec/job_change.h"

namespace renzan {
namespace {

struct UpdateFlags {
  ManyJobsFlags jobs;
  cluster::spec::JobChange change;
};

// What no job could have is an error before any job is changed.
void CheckChange(const cluster::spec::JobChange& change) {
  if (change.priority.empty() && change.queue.empty() && change.timeout.empty())
    Fail(ErrorCode::kUsage, "what is to change? Give --priority, --to-queue or --timeout");
  try {
    WithChange("command: [x]", "command line", change);
  } catch (const Error& error) {
    const auto quoted = [](const std::string& text) { return Document(text).dump(); };
    const std::vector<Shorthand> typed = {
        {"--priority " + change.priority, "priority=" + change.priority},
        {"--to-queue " + change.queue, "queue=" + quoted(change.queue)},
        {"--timeout " + change.timeout, "timeout=" + quoted(change.timeout)}};
    RethrowAsTyped(error, typed);
  }
}

void PrintChanged(const Document& done) {
  const std::string changed = done.at("changed");
  fmt::print("job {}: {}; {}", done.at("job").get<std::string>(),
             done.at("state").get<std::string>(), changed.empty() ? "it was so already" : changed);
  if (const Document& note = done.at("note"); note.is_string())
    fmt::print(" ({})", note.get<std::string>());
  fmt::print("\n");
}

void Update(const UpdateFlags& flags) {
  CheckChange(flags.change);
  ForAllJobs(flags.jobs, {.applies = IsNotCollecting,
                          .act =
                              [&](cluster::Backend& backend, const std::string& job) {
                                Document done = {{"job", job}};
                                done.update(backend.ChangeJob(job, flags.change));
                                return done;
                              },
                          .print = PrintChanged});
}

}  // namespace

void AddJobUpdateVerb(CLI::App& job) {
  CLI::App* verb = job.add_subcommand(
      "update", "Change the priority, queue or time limit of jobs that wait or run");
  const auto flags = std::make_shared<UpdateFlags>();
  verb->add_option("--priority", flags->change.priority, "Higher goes first");
  verb->add_option("--to-queue", flags->change.queue,
                   "Another queue; only of jobs that wait (--queue chooses jobs)");
  verb->add_option("--timeout", flags->change.timeout,
                   "Of the job's total running time, with what it has run already: 2h; 0s: none");
  AddManyJobsFlags(*verb, flags->jobs);
  verb->footer(
      "Needs the rights that submitting the jobs so would need.\n"
      "Example: renzan job update 12 --priority 5 --timeout 2h\n"
      "Example: renzan job update --name 'sweep-*' --state pending --to-queue ranking");
  verb->callback([flags] { Update(*flags); });
}

}  // namespace renzan
