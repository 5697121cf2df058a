#include "renzan/cli/job_system/load.h"

#include <algorithm>
#include <array>

#include "renzan/base/build_id.h"
#include "renzan/base/error.h"
#include "renzan/base/plugin.h"
#include "renzan/cli/job_system/library.h"

namespace renzan {
namespace {

// In the order of the help. tests/e2e/job_system_library_test.sh compares them with the library's.
constexpr std::array<std::string_view, 7> kVerbs = {"submit",  "jobs",  "job",     "pod-run",
                                                    "cluster", "nodes", "simulate"};

constexpr Plugin kPlugin = {
    .file = "librenzan_jobs.so",
    .build = "renzan_jobs_build",
    .code = ErrorCode::kNoInput,
    .what = "the job system",
    .advice = "build it with `scripts/build release renzan_jobs`, or reinstall renzan"};

void* Library() {
  static void* const handle = LoadPlugin(kPlugin, PathOfPlugin(kPlugin), BuildId());
  return handle;
}

template <class Function>
Function* FunctionOf(const char* name) {
  return reinterpret_cast<Function*>(FunctionOfPlugin(Library(), name));
}

}  // namespace

bool IsJobSystemVerb(std::string_view word) {
  return std::find(kVerbs.begin(), kVerbs.end(), word) != kVerbs.end();
}

void AddJobSystemVerbs(CLI::App& app, int& exit_status) {
  const LogFunctions log;
  FunctionOf<decltype(renzan_jobs_add_verbs)>("renzan_jobs_add_verbs")(&app, &exit_status, &log);
}

void CheckJobSystem() { Library(); }

DaemonState DaemonInJobSystem() {
  DaemonState state;
  FunctionOf<decltype(renzan_jobs_daemon_facts)>("renzan_jobs_daemon_facts")(&state.disk_trouble,
                                                                             &state.history);
  return state;
}

std::optional<JobSystemVersions> VersionsInJobSystem() {
  JobSystemVersions versions;
  try {
    FunctionOf<decltype(renzan_jobs_library_versions)>("renzan_jobs_library_versions")(
        &versions.sqlite, &versions.microhttpd);
  } catch (const Error&) {
    return std::nullopt;
  }
  return versions;
}

}  // namespace renzan
