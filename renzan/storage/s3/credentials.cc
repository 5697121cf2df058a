#include "renzan/storage/s3/credentials.h"

#include <string_view>

#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/log.h"
#include "renzan/storage/s3/instance_metadata.h"
#include "renzan/storage/s3/profile_file.h"
#include "renzan/storage/s3/temporary_credentials.h"
#include "renzan/storage/s3/web_identity.h"

namespace renzan::s3 {
namespace {

constexpr double kRenewBeforeSeconds = 5 * 60;
// After a renewal that fails or returns the same credentials, requests do not try another one for
// so long.
constexpr double kRetrySeconds = 30;

// `origin` is the variable, or file and line. Messages never show the value or a part of it.
std::string CheckedKey(const std::string& value, const std::string& origin) {
  if (!IsKeyText(value))
    Fail(ErrorCode::kConfig,
         "{}: the value has a space, a line break or another character that no key has: copy it "
         "again",
         origin);
  return value;
}

std::vector<ProfileFile> ProfileFiles(const Environment& environment) {
  std::vector<ProfileFile> files;
  files.push_back(ReadProfileFile(environment, ProfileFileKind::kCredentials));
  files.push_back(ReadProfileFile(environment, ProfileFileKind::kConfig));
  return files;
}

// Why the files give no credentials: "profile 'x' has no keys in A and B (does not exist)".
std::string WhatFilesLack(const Environment& environment, const std::string& profile) {
  std::string names, ways;
  for (const ProfileFile& file : ProfileFiles(environment)) {
    names += (names.empty() ? "" : " and ") + file.Describe();
    for (const char* const key : {"credential_process", "login_session", "role_arn", "sso_session",
                                  "sso_start_url", "web_identity_token_file"})
      if (const ProfileFile::Value* const value = file.Find(profile, key))
        ways += fmt::format(
            "; {}: {} is not supported here (`aws configure export-credentials --format env` "
            "displays keys to set)",
            file.Where(*value), key);
  }
  return fmt::format("profile '{}' has no keys in {}{}", Escape(profile), names, ways);
}

}  // namespace

CredentialSource::CredentialSource(Settings settings, Environment environment, HttpSender& http,
                                   const Clock& clock)
    : settings_(std::move(settings)),
      environment_(std::move(environment)),
      http_(http),
      clock_(clock) {}

Credentials CredentialSource::Get() {
  const std::optional<Found> before = Current();
  if (before && !IsDue(*before)) return before->credentials;
  const int failures = failures_;
  std::unique_lock finding(finding_mutex_, std::defer_lock);
  if (!before || !IsValid(*before)) {
    finding.lock();
  } else if (!finding.try_lock()) {
    return before->credentials;  // another thread renews them; no need to wait for it
  }
  const std::optional<Found> current = Current();  // another thread may just have found them
  if (current && !IsDue(*current)) return current->credentials;
  const bool is_valid = current && IsValid(*current);
  if (is_valid && clock_.MonotonicSeconds() < next_renewal_seconds_) return current->credentials;
  if (!is_valid) ThrowIfFailedSince(failures);
  next_renewal_seconds_ = clock_.MonotonicSeconds() + kRetrySeconds;
  try {
    return FindAndKeep();
  } catch (const Error& error) {
    if (!is_valid) throw;
    if (!has_warned_)
      LogWarning("cannot renew the credentials from {}, which expire at {}: {}", current->origin,
                 FormatUtc(*current->expires_unix_seconds), error.what());
    has_warned_ = true;
    return current->credentials;
  }
}

bool CredentialSource::Renew(const Credentials& refused) {
  const int failures = failures_;
  const std::lock_guard finding(finding_mutex_);
  const std::optional<Found> current = Current();
  if (current && current->credentials != refused) return true;  // another thread was first
  ThrowIfFailedSince(failures);
  return FindAndKeep() != refused;
}

std::string CredentialSource::origin() {
  const std::optional<Found> current = Current();
  return current ? current->origin : "";
}

std::optional<CredentialSource::Found> CredentialSource::Current() {
  const std::lock_guard lock(mutex_);
  return current_;
}

bool CredentialSource::IsDue(const Found& found) const {
  return found.expires_unix_seconds &&
         clock_.UnixSeconds() >= *found.expires_unix_seconds - kRenewBeforeSeconds;
}

bool CredentialSource::IsValid(const Found& found) const {
  return !found.expires_unix_seconds || clock_.UnixSeconds() < *found.expires_unix_seconds;
}

Credentials CredentialSource::FindAndKeep() {
  try {
    Found found = Find();
    has_warned_ = false;
    const std::lock_guard lock(mutex_);
    current_ = std::move(found);
    return current_->credentials;
  } catch (const Error& error) {
    last_failure_ = error;
    ++failures_;
    throw;
  }
}

// Without this, threads that waited for one another would each run into the same failure in turn.
void CredentialSource::ThrowIfFailedSince(int failures) const {
  if (failures_ != failures) throw *last_failure_;
}

CredentialSource::Found CredentialSource::Find() {
  if (auto found = FromEnvironment()) return *std::move(found);
  if (auto found = FromWebIdentity()) return *std::move(found);
  if (auto found = FromFiles()) return *std::move(found);
  if (auto found = FromInstance()) return *std::move(found);
  Fail(ErrorCode::kConfig,
       "no credentials for the object store: neither AWS_ACCESS_KEY_ID nor "
       "AWS_WEB_IDENTITY_TOKEN_FILE is set; {}; the instance's metadata service is not asked: set "
       "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write them to a profile, or, on a cloud's "
       "instance that has a role, set RENZAN_S3_INSTANCE_METADATA=1",
       WhatFilesLack(environment_, settings_.profile));
}

std::optional<CredentialSource::Found> CredentialSource::FromEnvironment() const {
  constexpr const char* kId = "AWS_ACCESS_KEY_ID";
  constexpr const char* kSecret = "AWS_SECRET_ACCESS_KEY";
  constexpr const char* kToken = "AWS_SESSION_TOKEN";
  const auto id = environment_(kId), secret = environment_(kSecret), token = environment_(kToken);
  if (!id && !secret) return std::nullopt;
  if (!id || !secret)
    Fail(ErrorCode::kConfig, "{} is set, but {} is not: set both, or neither", id ? kId : kSecret,
         id ? kSecret : kId);
  return Found{.credentials = Credentials{.access_key_id = CheckedKey(*id, kId),
                                          .secret_access_key = CheckedKey(*secret, kSecret),
                                          .session_token = token ? CheckedKey(*token, kToken) : ""},
               .origin = kId,
               .expires_unix_seconds = {}};
}

std::optional<CredentialSource::Found> CredentialSource::FromWebIdentity() {
  auto found = CredentialsOfWebIdentity(environment_, settings_.region, http_);
  if (!found) return std::nullopt;
  return Found{.credentials = std::move(found->credentials),
               .origin = "AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN",
               .expires_unix_seconds = found->expires_unix_seconds};
}

std::optional<CredentialSource::Found> CredentialSource::FromFiles() const {
  constexpr const char* kId = "aws_access_key_id";
  constexpr const char* kSecret = "aws_secret_access_key";
  const std::string& profile = settings_.profile;
  for (const ProfileFile& file : ProfileFiles(environment_)) {
    const auto *const id = file.Find(profile, kId), *const secret = file.Find(profile, kSecret);
    if (id == nullptr && secret == nullptr) continue;
    if (id == nullptr || secret == nullptr)
      Fail(ErrorCode::kConfig, "{}: profile '{}' has {}, but no {}: add it",
           file.Where(id != nullptr ? *id : *secret), Escape(profile),
           id != nullptr ? kId : kSecret, id != nullptr ? kSecret : kId);
    const auto* const token = file.Find(profile, "aws_session_token");
    const auto checked = [&file](const ProfileFile::Value* value) {
      return value == nullptr ? "" : CheckedKey(value->text, file.Where(*value));
    };
    return Found{.credentials = Credentials{.access_key_id = checked(id),
                                            .secret_access_key = checked(secret),
                                            .session_token = checked(token)},
                 .origin = fmt::format("profile '{}' of {}", Escape(profile), file.path),
                 .expires_unix_seconds = {}};
  }
  return std::nullopt;
}

std::optional<CredentialSource::Found> CredentialSource::FromInstance() {
  auto found = CredentialsOfInstance(environment_, http_);
  if (!found) return std::nullopt;
  return Found{.credentials = std::move(found->credentials),
               .origin = "the instance's metadata service",
               .expires_unix_seconds = found->expires_unix_seconds};
}

}  // namespace renzan::s3
