#pragma once

// For tests: environment variables of their own, and a home directory for profile files.

#include <map>
#include <optional>
#include <string>

#include "renzan/base/file/file.h"
#include "renzan/storage/s3/settings.h"

namespace renzan::s3 {

class TestEnvironment {
 public:
  TestEnvironment() {
    CreateDirectories(home / ".aws");
    variables["HOME"] = home.path();
  }

  // Sees later changes; must not outlive this object.
  Environment Get() const {
    return [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      if (found == variables.end()) return std::nullopt;
      return found->second;
    };
  }

  // Returns its path.
  std::string Write(const std::string& name, const std::string& text) const {
    WriteFileAtomically(home / name, text);
    return home / name;
  }

  TemporaryDirectory home;
  std::map<std::string, std::string> variables;
};

}  // namespace renzan::s3
