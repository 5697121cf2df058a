#pragma once

// Where an S3-compatible store is and how it is addressed, from the variables and files that other
// S3 clients read. docs/object_store.md lists them.

#include <functional>
#include <optional>
#include <string>

namespace renzan::s3 {

// Looks up an environment variable; nothing if it is not set or empty.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

struct Settings {
  // "https://s3.eu-west-1.amazonaws.com" or a store's own. AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL,
  // `endpoint_url` of the profile. Without a '/' at its end, and without its scheme's own port.
  std::string endpoint;
  bool is_aws = true;  // none of these was set
  // AWS_REGION, AWS_DEFAULT_REGION, `region` of the profile; else us-east-1.
  std::string region;
  // RENZAN_S3_ADDRESSING: "virtual" (bucket.host/key), "path" (host/bucket/key) or "auto": virtual
  // on AWS, path elsewhere.
  enum class Addressing { kAuto, kPath, kVirtual };
  Addressing addressing = Addressing::kAuto;
  std::string ca_bundle;  // AWS_CA_BUNDLE
  std::string profile;    // AWS_PROFILE, else "default"

  // How the bucket is addressed: also by path where its name has a dot and the endpoint is https,
  // because no certificate fits bucket.with.dots.host, and where it has capitals or '_', which a
  // host's name has not.
  bool UsesPathStyle(const std::string& bucket) const;
};

// Throws Error kConfig, which names the variable or the file and line; kNoInput or kIo for a file
// that cannot be read. The profile's values may be in either of its files.
Settings ReadSettings(const Environment& environment);

}  // namespace renzan::s3
