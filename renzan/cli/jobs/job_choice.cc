#include "renzan/cli/jobs/job_choice.h"

#include <fnmatch.h>

#include <CLI/CLI.hpp>
#include <algorithm>
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

bool IsRunning(const std::string& state) {
  return state == cluster::NameOf(cluster::RecordState::kRunning);
}

std::vector<std::string> WithoutRepetitions(const std::vector<std::string>& ids) {
  std::vector<std::string> unique;
  for (const std::string& id : ids)
    if (std::find(unique.begin(), unique.end(), id) == unique.end()) unique.push_back(id);
  return unique;
}

}  // namespace

bool IsNotCollecting(const std::string& state) {
  return state != cluster::NameOf(cluster::RecordState::kCollecting);
}

Applies WhereApplies(cluster::JobAction action) {
  switch (action) {
    case cluster::JobAction::kPreempt:
    case cluster::JobAction::kCheckpoint:
      return IsRunning;
    case cluster::JobAction::kHold:
    case cluster::JobAction::kRelease:
      return IsNotCollecting;
    case cluster::JobAction::kCancel:
      break;
  }
  return [](const std::string&) { return true; };
}

void AddJobChoice(CLI::App& verb, JobChoice& choice) {
  verb.add_option("ID", choice.ids, kJobHelp);
  const CLI::Validator not_empty(
      [](const std::string& text) { return text.empty() ? std::string("is empty") : ""; }, "");
  const auto add = [&](const char* name, std::string& value, const char* help) {
    return verb.add_option(name, value, help)->check(not_empty);
  };
  add("--name", choice.name,
      "Your jobs whose name matches, instead of IDs: 'sweep-*', as in a shell");
  add("--queue", choice.queue, "Your jobs in this queue");
  add("--state", choice.state, "Your jobs in this state, such as pending")
      ->check(OneOf({cluster::kRecordStates.begin(), cluster::kRecordStates.end()}));
  add("--user", choice.user,
      "Jobs of this user (on Kubernetes a namespace) instead of yours; '*': of all");
}

bool Matches(const JobChoice& choice, const Applies& applies, const cluster::Document& job) {
  const std::string name = job.at("name");
  return job.at("ended").is_null() && applies(job.at("state")) &&
         (choice.name.empty() || fnmatch(choice.name.c_str(), name.c_str(), 0) == 0);
}

ChosenJobs Choose(cluster::Backend& backend, const JobChoice& choice, const Applies& applies) {
  const bool any_filter = !choice.name.empty() || !choice.queue.empty() || !choice.user.empty() ||
                          !choice.state.empty();
  if (any_filter != choice.ByMatch())
    Fail(ErrorCode::kUsage, "{}",
         any_filter
             ? "give ids of jobs, or what jobs must match (--name, --queue, --state, --user), "
               "not both"
             : "which jobs? Give their ids, or --name, --queue, --state or --user");
  if (!choice.ByMatch()) return {.ids = WithoutRepetitions(choice.ids)};
  cluster::JobsQuery query{.limit = 0, .queue = choice.queue, .state = choice.state};
  if (choice.user != kEverybody) query.user = choice.user.empty() ? backend.User() : choice.user;
  ChosenJobs chosen{.ids = {}, .answer = backend.ListJobs(query)};
  for (const cluster::Document& job : chosen.answer.at("jobs"))
    if (Matches(choice, applies, job)) chosen.ids.push_back(IdOf(job));
  return chosen;
}

}  // namespace renzan
