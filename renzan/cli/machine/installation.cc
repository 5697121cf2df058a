#include "renzan/cli/machine/installation.h"

#include <filesystem>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan {

std::string ThisProgram() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::string JobSystemLibrary() {
  constexpr const char* kFile = "librenzan_jobs.so";
  const std::filesystem::path here = std::filesystem::path(ThisProgram()).parent_path();
  const std::string beside = here / kFile, in_lib = here.parent_path() / "lib" / kFile;
  for (const std::string& path : {beside, in_lib})
    if (FileExists(path)) return path;
  Fail(ErrorCode::kNoInput, "the job system is missing: neither {} nor {} exists: {}", beside,
       in_lib, kHowToGetJobSystem);
}

std::string SupervisorProgram() {
  const std::filesystem::path here = std::filesystem::path(ThisProgram()).parent_path();
  const std::string build_program = here / "renzan-supervisor";
  if (FileExists(build_program)) return build_program;
  const std::string installed = here.parent_path() / "libexec/renzan/renzan-supervisor";
  if (FileExists(installed)) return installed;
  Fail(ErrorCode::kNoInput,
       "renzan-supervisor is missing: neither {} nor {} exists; reinstall renzan", build_program,
       installed);
}

}  // namespace renzan
