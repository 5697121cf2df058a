#pragma once

// The job system's verbs. They are in a library of their own, librenzan_jobs.so, so that training
// needs neither to compile nor to load the job system: the program loads it when one of its verbs,
// or the list of all verbs, is asked for.

#include <optional>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace renzan {

// Whether `word` is one of these verbs: known without the library.
bool IsJobSystemVerb(std::string_view word);

// Adds them to `app`. Throws Error kNoInput, with what to do, if the library is missing, cannot be
// loaded, or is of another build than this program.
void AddJobSystemVerbs(CLI::App& app, int& exit_status);

// Throws the same unless they can be added.
void CheckJobSystem();

// What this machine's daemon says of its disk, if that is nearly full, and of what it keeps; "" if
// it says nothing, or there is no daemon. Throws as CheckJobSystem().
struct DaemonState {
  std::string disk_trouble, history;
};
DaemonState DaemonInJobSystem();

// Versions of the libraries that the job system uses; nothing if it cannot be loaded.
struct JobSystemVersions {
  std::string sqlite, microhttpd;
};
std::optional<JobSystemVersions> VersionsInJobSystem();

}  // namespace renzan
