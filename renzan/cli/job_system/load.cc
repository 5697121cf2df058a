#include "renzan/cli/job_system/load.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>

#include "renzan/base/build_id.h"
#include "renzan/base/error.h"
#include "renzan/cli/job_system/library.h"
#include "renzan/cli/machine/installation.h"

namespace renzan {
namespace {

// In the order of the help. tests/e2e/job_system_library_test.sh compares them with the library's.
constexpr std::array<std::string_view, 7> kVerbs = {"submit",  "jobs",  "job",     "pod-run",
                                                    "cluster", "nodes", "simulate"};

void* Library() {
  static void* handle = nullptr;
  if (handle != nullptr) return handle;
  const std::string path = JobSystemLibrary();
  void* const opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr)
    Fail(ErrorCode::kNoInput, "the job system cannot be loaded: {}: {}", dlerror(),
         kHowToGetJobSystem);
  const auto build =
      reinterpret_cast<decltype(&renzan_jobs_build)>(dlsym(opened, "renzan_jobs_build"));
  const std::string theirs = build == nullptr ? "unknown" : build();
  if (theirs != BuildId())
    Fail(ErrorCode::kNoInput, "{} is of another build than this program ({}, not {}): {}", path,
         theirs, BuildId(), kHowToGetJobSystem);
  return handle = opened;
}

template <class Function>
Function* FunctionOf(const char* name) {
  const auto found = reinterpret_cast<Function*>(dlsym(Library(), name));
  CHECK_MSG(found != nullptr, "{} lacks {}", JobSystemLibrary(), name);
  return found;
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
