#include "renzan/base/file/same_path.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace renzan {
namespace {

std::vector<std::string> PartsOf(const std::string& path) {
  const bool in_store = path.find("://") != std::string::npos;
  std::error_code error;  // a removed current directory; then the text is compared
  const std::string absolute =
      in_store || path.empty() ? path : std::filesystem::absolute(path, error).string();
  const std::string& text = error ? path : absolute;
  std::vector<std::string> parts;
  for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('/', begin), text.size());
    std::string part = text.substr(begin, end - begin);
    if (!part.empty() && (part != "." || in_store)) parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace

bool IsSamePath(const std::string& a, const std::string& b) {
  return a == b || (a.empty() == b.empty() && PartsOf(a) == PartsOf(b));
}

}  // namespace renzan
