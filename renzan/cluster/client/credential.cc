#include "renzan/cluster/client/credential.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cluster/client/paths.h"

namespace renzan::cluster::client {
namespace {

constexpr const char* kPinBegin = "sha256//";
constexpr const char* kNext =
    "ask the daemon's operator for a new one (`renzan cluster token create`)";

bool IsPrintable(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

}  // namespace

std::string CredentialText(const Credential& credential) {
  const nlohmann::ordered_json object = {{"address", credential.address},
                                         {"pin", credential.pin},
                                         {"user", credential.user},
                                         {"expires", credential.expires},
                                         {"token", credential.token}};
  return object.dump(2) + "\n";
}

Credential ReadCredential(const std::string& path) {
  std::string text;
  try {
    text = ReadFile(path);
  } catch (const Error& error) {
    Fail(ErrorCode::kNoPermission, "{}: set RENZAN_TOKEN_FILE to your token's file, or {}",
         error.what(), kNext);
  }
  const auto object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto value = [&](const char* key) {
    const auto at = object.is_object() ? object.find(key) : object.end();
    return at != object.end() && at->is_string() ? at->get<std::string>() : "";
  };
  Credential credential{.address = value("address"),
                        .pin = value("pin"),
                        .user = value("user"),
                        .expires = value("expires"),
                        .token = value("token")};
  if (!IsTcpAddress(credential.address) || !credential.pin.starts_with(kPinBegin) ||
      !IsPrintable(credential.pin) || !IsPrintable(credential.token))
    Fail(ErrorCode::kNoPermission,
         "{} is not the file of a token (a JSON object with address, pin and token): {}", path,
         kNext);
  return credential;
}

}  // namespace renzan::cluster::client
