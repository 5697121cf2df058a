#include "renzan/cli/working_directory.h"

#include <filesystem>
#include <system_error>

#include "renzan/base/error.h"

namespace renzan {

std::string WorkingDirectory() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::current_path(error);
  if (error)
    Fail(ErrorCode::kNoInput,
         "the current directory cannot be determined ({}): it may have been removed; change to "
         "another one",
         error.message());
  return path.string();
}

std::string AbsolutePath(const std::string& path) {
  const std::filesystem::path given(path);
  return (given.is_absolute() ? given : WorkingDirectory() / given).lexically_normal().string();
}

}  // namespace renzan
