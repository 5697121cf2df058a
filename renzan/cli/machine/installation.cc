#include "renzan/cli/machine/installation.h"

#include <filesystem>

#include "renzan/base/error.h"
#include "renzan/base/file.h"

namespace renzan {

std::string SupervisorProgram() {
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::string beside = here / "renzan-supervisor";
  if (FileExists(beside)) return beside;
  const std::string installed = here.parent_path() / "libexec/renzan/renzan-supervisor";
  if (FileExists(installed)) return installed;
  Fail(ErrorCode::kNoInput,
       "renzan-supervisor is missing: there is neither {} nor {}; install renzan as a whole",
       beside, installed);
}

}  // namespace renzan
