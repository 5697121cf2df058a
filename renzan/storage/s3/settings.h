#pragma once

// Where an S3-compatible store is and how it is addressed, from the variables and files that other
// S3 clients read. docs/object_store.md lists them.

#include <functional>
#include <optional>
#include <string>

namespace renzan::s3 {

// Looks up an environment variable; nothing if it is unset or empty.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

struct Settings {
  // "https://s3.eu-west-1.amazonaws.com" or a store's own. AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL,
  // `endpoint_url` of the profile. Without a trailing '/', and without its scheme's default port.
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

  // Whether the bucket is addressed by path: also if its name has a dot and the endpoint is https,
  // because no certificate matches bucket.with.dots.host, or if it has capitals or '_', which host
  // names cannot have.
  bool UsesPathStyle(const std::string& bucket) const;
};

// Throws Error kConfig, which names the variable or the file and line; kNoInput or kIo for a file
// that cannot be read. Either of the profile's files may hold its values.
Settings ReadSettings(const Environment& environment);

}  // namespace renzan::s3
