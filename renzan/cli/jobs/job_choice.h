#pragma once

// The jobs that a verb acts on: by id, or those that match.

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

// None if none match, of which pending ones are left out unless `pending_too`. Throws Error kUsage
// if neither or both kinds of options are given.
std::vector<std::string> ChosenJobs(cluster::Backend& backend, const JobChoice& choice,
                                    bool pending_too);

}  // namespace renzan
