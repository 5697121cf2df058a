#pragma once

// The INI files in which S3 clients keep profiles: ~/.aws/credentials, whose sections are "[name]",
// and ~/.aws/config, whose sections are "[default]" and "[profile name]". Other sections of the
// latter are skipped, and so are nested values: indented lines below a "key =". Any other line is
// an Error. Messages of this file's functions never show values: they may be secret.

#include <map>
#include <string>
#include <string_view>

#include "renzan/storage/s3/settings.h"

namespace renzan::s3 {

struct ProfileFile {
  struct Value {
    std::string text;  // not empty
    int line = 0;
  };
  using Profile = std::map<std::string, Value>;  // keys in lower case

  std::string path;
  std::string not_read;  // why the file was not read; empty if it was
  std::map<std::string, Profile> profiles;

  // Null if there is no such value.
  const Value* Find(const std::string& profile, const std::string& key) const;
  // "/home/ann/.aws/config:3"
  std::string Where(const Value& value) const;
  // Its path, for messages, with the reason if it was not read.
  std::string Describe() const;
};

enum class ProfileFileKind { kCredentials, kConfig };

// Throws Error kConfig with file and line.
ProfileFile ParseProfileFile(const std::string& path, std::string_view text, ProfileFileKind kind);

// Reads the file at AWS_SHARED_CREDENTIALS_FILE or AWS_CONFIG_FILE, else the one below HOME. A
// missing file has no profiles, and neither has one below HOME that may not be read: HOME may be
// another user's. Throws Error kConfig as above, kNoInput or kIo.
ProfileFile ReadProfileFile(const Environment& environment, ProfileFileKind kind);

}  // namespace renzan::s3
