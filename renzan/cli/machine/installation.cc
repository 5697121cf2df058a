#include "renzan/cli/machine/installation.h"

#include <csignal>

#include "renzan/base/build_id.h"
#include "renzan/base/error.h"
#include "renzan/base/plugin.h"
#include "renzan/base/this_program.h"
#include "renzan/storage/s3/library.h"
#include "renzan/storage/storage.h"

namespace renzan {
namespace {

constexpr Plugin kS3Plugin = {.file = "librenzan_s3.so",
                              .build = "renzan_s3_build",
                              .code = ErrorCode::kNoInput,
                              .what = "the client of object stores (s3://)",
                              .advice =
                                  "build it with `scripts/build release renzan_s3`, or "
                                  "reinstall renzan"};

std::unique_ptr<Storage> OpenObjectStore() {
  void* const library = LoadPlugin(kS3Plugin, PathOfPlugin(kS3Plugin), BuildId());
  const auto open =
      reinterpret_cast<decltype(&renzan_s3_open)>(FunctionOfPlugin(library, "renzan_s3_open"));
  // A connection that breaks is an Error.
  std::signal(SIGPIPE, SIG_IGN);
  const LogFunctions log;
  return std::unique_ptr<Storage>(open(&log, /*throw_failed_checks=*/false));
}

}  // namespace

std::string SupervisorProgram() {
  constexpr const char *kFolder = "libexec/renzan", *kFile = "renzan-supervisor";
  if (const auto path = InstalledFile(kFolder, kFile)) return *path;
  Fail(ErrorCode::kNoInput, "renzan-supervisor is missing: {}; reinstall renzan",
       WhyNotInstalled(kFolder, kFile));
}

void UseObjectStores() { SetObjectStore(OpenObjectStore); }

std::string CheckObjectStores() {
  std::string path = PathOfPlugin(kS3Plugin);
  LoadPlugin(kS3Plugin, path, BuildId());
  return path;
}

}  // namespace renzan
