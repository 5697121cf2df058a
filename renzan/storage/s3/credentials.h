#pragma once

// Credentials from the places that other S3 clients look at, in this order:
//
//   1. AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
//   2. a web identity token: AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN, AWS_ROLE_SESSION_NAME
//      (STS AssumeRoleWithWebIdentity, at AWS_ENDPOINT_URL_STS or the region's)
//   3. the shared credentials file: AWS_SHARED_CREDENTIALS_FILE, else ~/.aws/credentials, and then
//      ~/.aws/config (AWS_CONFIG_FILE), profile AWS_PROFILE
//   4. the instance's metadata service (version 2), only with RENZAN_S3_INSTANCE_METADATA=1: a
//      machine that is not in a cloud would wait for an answer
//
// Temporary credentials are renewed a few minutes before they expire. They never appear in a
// message. Thread-safe.

#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/base/http/http.h"
#include "renzan/storage/s3/settings.h"
#include "renzan/storage/s3/sigv4.h"

namespace renzan::s3 {

class CredentialSource {
 public:
  // `http` and `clock` outlive it.
  CredentialSource(Settings settings, Environment environment, HttpSender& http,
                   const Clock& clock);

  // Throws Error kConfig if there are none (the message lists where it looked and what to set) or
  // if they are incomplete (it names file and line); kUnavailable if a service that issues them
  // cannot be reached, kNoPermission if it refuses, kIo if its answer is invalid; kNoInput or kIo
  // for a file that cannot be read. Temporary ones that cannot be renewed are used until they
  // expire.
  Credentials Get();

  // Reads them again after the store said that they have expired or are unknown. False if they are
  // the same, so that another attempt would also fail. Throws as Get() does.
  bool Renew(const Credentials& refused);

  // Where the current credentials come from, for messages: "AWS_ACCESS_KEY_ID" or "profile 'x' of
  // FILE". Empty before the first Get().
  std::string origin();

 private:
  struct Found {
    Credentials credentials;
    std::string origin;
    std::optional<double> expires_unix_seconds;
  };
  std::optional<Found> Current();
  bool IsDue(const Found& found) const;    // time to renew them
  bool IsValid(const Found& found) const;  // not expired
  // Requires finding_mutex_.
  Credentials FindAndKeep();
  void ThrowIfFailedSince(int failures) const;
  Found Find();
  std::optional<Found> FromEnvironment() const;
  std::optional<Found> FromWebIdentity();
  std::optional<Found> FromFiles() const;
  std::optional<Found> FromInstance();

  const Settings settings_;
  const Environment environment_;
  HttpSender& http_;
  const Clock& clock_;

  // Held while credentials are looked for, which may take seconds; taken before mutex_.
  std::mutex finding_mutex_;
  double next_renewal_seconds_ = 0;  // monotonic; no renewal before, while they are valid
  bool has_warned_ = false;          // about a renewal that failed
  std::optional<Error> last_failure_;
  std::atomic<int> failures_ = 0;  // read without a lock
  std::mutex mutex_;               // guards what follows
  std::optional<Found> current_;
};

}  // namespace renzan::s3
