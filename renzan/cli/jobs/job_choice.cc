#include "renzan/cli/jobs/job_choice.h"

#include <fnmatch.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/cli/text/one_of.h"
#include "renzan/cluster/core/engine/record_state.h"

namespace renzan {
namespace {

constexpr const char* kEverybody = "*";

std::string IdOf(const cluster::Document& job) {
  if (!job.at("id").is_null()) return job.at("id").dump();
  // Kubernetes: the controller has not numbered it yet.
  return fmt::format("{}/{}", job.at("user").get<std::string>(), job.at("name").get<std::string>());
}

bool Matches(const std::string& pattern, const std::string& name) {
  return pattern.empty() || fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

}  // namespace

void AddJobChoice(CLI::App& verb, JobChoice& choice) {
  verb.add_option("ID", choice.ids, kJobHelp);
  verb.add_option("--name", choice.name,
                  "Your jobs whose name matches, instead of IDs: 'sweep-*', as in a shell");
  verb.add_option("--queue", choice.queue, "Your jobs in this queue");
  verb.add_option("--state", choice.state, "Your jobs in this state, such as pending")
      ->check(OneOf({cluster::kRecordStates.begin(), cluster::kRecordStates.end()}));
  verb.add_option("--user", choice.user,
                  "Jobs of this user (on Kubernetes a namespace) instead of yours; '*': of all");
}

std::vector<std::string> ChosenJobs(cluster::Backend& backend, const JobChoice& choice,
                                    bool pending_too) {
  const bool any_filter = !choice.name.empty() || !choice.queue.empty() || !choice.user.empty() ||
                          !choice.state.empty();
  if (any_filter != choice.ByMatch())
    Fail(ErrorCode::kUsage, "{}",
         any_filter
             ? "give ids of jobs, or what jobs must match (--name, --queue, --state, --user), "
               "not both"
             : "which jobs? Give their ids, or --name, --queue, --state or --user");
  if (!choice.ByMatch()) return choice.ids;
  cluster::JobsQuery query{.limit = 0, .queue = choice.queue, .state = choice.state};
  if (choice.user != kEverybody)
    query.user = choice.user.empty() ? backend.User() : choice.user;
  std::vector<std::string> ids;
  const cluster::Document answer = backend.ListJobs(query);
  for (const cluster::Document& job : answer.at("jobs"))
    if (job.at("ended").is_null() && (pending_too || job.at("state") != "pending") &&
        Matches(choice.name, job.at("name")))
      ids.push_back(IdOf(job));
  return ids;
}

}  // namespace renzan
