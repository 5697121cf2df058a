#pragma once

// The jobs that a verb acts on: by id, or those that match.

#include <functional>
#include <string>
#include <vector>

#include "renzan/cluster/backend/backend.h"

namespace CLI {
class App;
}

namespace renzan {

struct JobChoice {
  std::vector<std::string> ids;
  // Of jobs that have not ended. Empty: any; but without a user, the caller's own.
  std::string name, queue, user, state;

  // Whether the jobs are those that match, rather than those with the ids.
  bool ByMatch() const { return ids.empty(); }
};

constexpr const char* kJobHelp =
    "As shown by `renzan jobs`; on Kubernetes also NAME or NAMESPACE/NAME";

// The options, of which ids or one of the others must be given.
void AddJobChoice(CLI::App& verb, JobChoice& choice);

struct ChosenJobs {
  std::vector<std::string> ids;   // none if none match
  cluster::Document answer = {};  // which jobs could not be looked at; see Backend::ListJobs()
};
// Whether a verb succeeds for a job that is in this state and has not ended.
using Applies = std::function<bool(const std::string& state)>;
Applies WhereApplies(cluster::JobAction action);
bool IsNotCollecting(const std::string& state);

// Jobs in a state that the verb does not apply to do not match. Throws Error kUsage if neither or
// both kinds of options are given.
ChosenJobs Choose(cluster::Backend& backend, const JobChoice& choice, const Applies& applies);
bool Matches(const JobChoice& choice, const Applies& applies, const cluster::Document& job);

}  // namespace renzan
