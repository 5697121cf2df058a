#include "renzan/base/this_program.h"

#include <sys/auxv.h>

#include <filesystem>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan {
namespace {

std::filesystem::path OwnDirectory() { return std::filesystem::path(ThisProgram()).parent_path(); }
std::string Beside(const std::string& file) { return OwnDirectory() / file; }
std::string In(const std::string& folder, const std::string& file) {
  return OwnDirectory().parent_path() / folder / file;
}

}  // namespace

std::string ThisProgram(const std::string& proc, const char* started_as) {
  std::error_code no_proc, no_file;
  const std::filesystem::path linked = std::filesystem::read_symlink(proc + "/self/exe", no_proc);
  if (!no_proc) return linked.string();
  const std::filesystem::path started = std::filesystem::canonical(started_as, no_file);
  if (!no_file) return started.string();
  Fail(ErrorCode::kOsError,
       "cannot find where this program lies: {}/self/exe: {}; {}: {}: mount /proc, or start the "
       "program by its full path",
       proc, no_proc.message(), started_as, no_file.message());
}

std::string ThisProgram() {
  static const std::string program =
      ThisProgram("/proc", reinterpret_cast<const char*>(::getauxval(AT_EXECFN)));
  return program;
}

std::optional<std::string> InstalledFile(const std::string& folder, const std::string& file) {
  for (const std::string& path : {Beside(file), In(folder, file)})
    if (FileExists(path)) return path;
  return std::nullopt;
}

std::string WhyNotInstalled(const std::string& folder, const std::string& file) {
  return fmt::format("neither {} nor {} exists", Beside(file), In(folder, file));
}

}  // namespace renzan
