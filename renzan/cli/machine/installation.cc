#include "renzan/cli/machine/installation.h"

#include <filesystem>

#include "renzan/base/error.h"
#include "renzan/base/file.h"

namespace renzan {

std::string KeeperProgram() {
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::string beside = here / "renzan-keeper";
  if (FileExists(beside)) return beside;
  const std::string installed = here.parent_path() / "libexec/renzan/renzan-keeper";
  if (FileExists(installed)) return installed;
  Fail(ErrorCode::kNoInput,
       "renzan-keeper is missing: there is neither {} nor {}; install renzan as a whole", beside,
       installed);
}

}  // namespace renzan
