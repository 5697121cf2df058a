#pragma once

// "s3://bucket/a/key". Pure functions.

#include <string>
#include <string_view>

namespace renzan::s3 {

struct Location {
  std::string bucket;
  std::string key;  // may be empty: the whole bucket

  std::string Path() const { return "s3://" + bucket + (key.empty() ? "" : "/" + key); }
  // The key as a directory: with a trailing '/', or empty if the key is.
  std::string Prefix() const { return key.empty() ? "" : key + "/"; }
};

// Drops "//" within the key and a trailing '/'. Throws Error kConfig for a bucket name that no
// store allows, and for a key that is too long or contains control characters, "." or "..".
Location ParseLocation(std::string_view path);

}  // namespace renzan::s3
