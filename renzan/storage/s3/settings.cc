#include "renzan/storage/s3/settings.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "renzan/base/ascii.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/storage/s3/endpoint.h"
#include "renzan/storage/s3/profile_file.h"

namespace renzan::s3 {
namespace {

struct Setting {
  std::string value;
  std::string origin;  // the variable, or file and line
};

class Lookup {
 public:
  Lookup(const Environment& environment, const std::string& profile)
      : environment_(environment),
        profile_(profile),
        config_(ReadProfileFile(environment, ProfileFileKind::kConfig)),
        credentials_(ReadProfileFile(environment, ProfileFileKind::kCredentials)) {}

  void RequireProfile() const {
    if (config_.profiles.contains(profile_) || credentials_.profiles.contains(profile_)) return;
    Fail(ErrorCode::kConfig,
         "AWS_PROFILE: there is no profile '{}': looked for [profile {}] in {} and for [{}] in {}; "
         "set it to one of theirs, or unset it",
         Escape(profile_), Escape(profile_), config_.Describe(), Escape(profile_),
         credentials_.Describe());
  }

  // The first one set: one of the variables, else the profile's value of `key`.
  std::optional<Setting> Find(std::initializer_list<const char*> variables,
                              const std::string& key) const {
    for (const char* const variable : variables)
      if (const auto value = environment_(variable)) return Setting{*value, variable};
    for (const ProfileFile* const file : {&config_, &credentials_})
      if (const ProfileFile::Value* const value = file->Find(profile_, key))
        return Setting{value->text, file->Where(*value) + ": " + key};
    return std::nullopt;
  }

 private:
  const Environment& environment_;
  const std::string& profile_;
  const ProfileFile config_, credentials_;
};

// A region becomes part of a URL.
std::string CheckedRegion(const Setting& region) {
  if (!std::all_of(region.value.begin(), region.value.end(),
                   [](char c) { return IsLetter(c) || IsDigit(c) || c == '-'; }))
    Fail(ErrorCode::kConfig,
         "{}: '{}' cannot be a region: it has letters, digits and '-', such as eu-west-1",
         region.origin, Escape(region.value));
  return region.value;
}

Settings::Addressing AddressingOf(const std::string& text) {
  if (text == "auto") return Settings::Addressing::kAuto;
  if (text == "path") return Settings::Addressing::kPath;
  if (text == "virtual") return Settings::Addressing::kVirtual;
  Fail(ErrorCode::kConfig,
       "RENZAN_S3_ADDRESSING: '{}' is not a valid value: write auto, path or virtual",
       Escape(text));
}

}  // namespace

bool Settings::UsesPathStyle(const std::string& bucket) const {
  if (addressing == Addressing::kPath) return true;
  const bool is_https = endpoint.starts_with("https://");
  if (!std::all_of(bucket.begin(), bucket.end(), [is_https](char c) {
        return (c >= 'a' && c <= 'z') || IsDigit(c) || c == '-' || (c == '.' && !is_https);
      }))
    return true;
  return addressing == Addressing::kAuto && !is_aws;
}

Settings ReadSettings(const Environment& environment) {
  const std::optional<std::string> profile = environment("AWS_PROFILE");
  Settings settings;
  settings.profile = profile.value_or("default");
  const Lookup lookup(environment, settings.profile);
  if (profile) lookup.RequireProfile();

  const auto region = lookup.Find({"AWS_REGION", "AWS_DEFAULT_REGION"}, "region");
  settings.region = region ? CheckedRegion(*region) : "us-east-1";
  const auto endpoint = lookup.Find({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}, "endpoint_url");
  settings.is_aws = !endpoint;
  settings.endpoint = endpoint ? CheckedEndpoint(endpoint->value, endpoint->origin)
                               : AwsEndpoint("s3", settings.region);
  if (const auto addressing = environment("RENZAN_S3_ADDRESSING"))
    settings.addressing = AddressingOf(*addressing);
  settings.ca_bundle = environment("AWS_CA_BUNDLE").value_or("");
  return settings;
}

}  // namespace renzan::s3
