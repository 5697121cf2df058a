#pragma once

// "s3://bucket/a/key". Pure functions.

#include <string>
#include <string_view>

namespace renzan::s3 {

struct Location {
  std::string bucket;
  std::string key;  // may be empty: the whole bucket

  std::string Path() const { return "s3://" + bucket + (key.empty() ? "" : "/" + key); }
  // The key as a directory: with a '/' at its end, but empty if it is empty.
  std::string Prefix() const { return key.empty() ? "" : key + "/"; }
};

// "//" in the key and a '/' at its end are left out. Throws Error kConfig for a bucket's name that
// no store allows, and for a key that is too long or has control characters, "." or ".." in it.
Location ParseLocation(std::string_view path);

}  // namespace renzan::s3
