#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace renzan {

// The bytes that this user can still write to the file system of `path`, or of the nearest
// directory above it that exists. Nothing if that cannot be determined.
std::optional<int64_t> FreeBytes(const std::string& path);

// Whether two paths are on one file system, as far as directories exist.
bool AreOnOneFileSystem(const std::string& a, const std::string& b);

}  // namespace renzan
