#include "renzan/storage/s3/location.h"

#include "renzan/base/ascii.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/storage/storage.h"

namespace renzan::s3 {
namespace {

constexpr std::string_view kScheme = "s3://";
constexpr size_t kMaxKeyBytes = 1024;

// https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html; '_' and capitals
// used to be allowed, and still are in other stores.
bool IsBucketName(std::string_view name) {
  if (name.size() < 3 || name.size() > 63) return false;
  const auto is_edge = [](char c) { return IsLetter(c) || IsDigit(c); };
  if (!is_edge(name.front()) || !is_edge(name.back())) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (!is_edge(c) && c != '-' && c != '.' && c != '_') return false;
    if (c == '.' && name[i - 1] == '.') return false;
  }
  return true;
}

}  // namespace

Location ParseLocation(std::string_view path) {
  const std::string normalized = NormalizedPath(std::string(path));
  const std::string_view rest = std::string_view(normalized).substr(kScheme.size());
  const size_t slash = rest.find('/');
  Location location{.bucket = std::string(rest.substr(0, slash)), .key = {}};
  if (slash != std::string_view::npos) location.key = rest.substr(slash + 1);
  if (!IsBucketName(location.bucket))
    Fail(ErrorCode::kConfig,
         "{}: '{}' cannot be the name of a bucket (3 to 63 letters, digits, '-' and '.'); write "
         "s3://BUCKET/PREFIX",
         Escape(path), Escape(location.bucket));
  if (location.key.size() > kMaxKeyBytes)
    Fail(ErrorCode::kConfig, "{}: the key has {} bytes, but stores allow {}: choose a shorter one",
         path, location.key.size(), kMaxKeyBytes);
  for (const char c : location.key)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      Fail(ErrorCode::kConfig, "{}: the key has control characters", Escape(path));
  const std::string bounded = "/" + location.key + "/";
  if (bounded.find("/./") != std::string::npos || bounded.find("/../") != std::string::npos)
    Fail(ErrorCode::kConfig,
         "{}: paths in a store have no '.' and '..': write the path without them", path);
  return location;
}

}  // namespace renzan::s3
