// What a program that provides credentials is told and what it answers.

#include <charconv>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/cluster/kubernetes/api/api.h"
#include "renzan/cluster/kubernetes/api/certificates.h"
#include "renzan/cluster/kubernetes/api/exec_plugin.h"

namespace renzan::cluster::kubernetes {
namespace {

constexpr const char* kKind = "ExecCredential";

// "2026-01-31T12:34:56Z", or with an offset: "2026-01-31T14:34:56+02:00".
std::optional<double> ParseTime(std::string text) {
  double offset = 0;
  const size_t size = text.size();
  if (size > 6 && (text[size - 6] == '+' || text[size - 6] == '-') && text[size - 3] == ':') {
    const auto number = [&](size_t at) {
      int value = 0;
      const char* const end = text.data() + at + 2;
      const auto [rest, error] = std::from_chars(text.data() + at, end, value);
      return error == std::errc() && rest == end ? std::optional(value) : std::nullopt;
    };
    const auto hours = number(size - 5), minutes = number(size - 2);
    if (!hours || !minutes) return std::nullopt;
    offset = (text[size - 6] == '-' ? -1 : 1) * (*hours * 3600.0 + *minutes * 60.0);
    text = text.substr(0, size - 6) + "Z";
  }
  const std::optional<double> time = ParseUtc(text);
  return time ? std::optional(*time - offset) : std::nullopt;
}

[[noreturn]] void FailAnswer(const ExecConfig& config, const std::string& what,
                             const char* next =
                                 "is it a program for credentials, and of the right "
                                 "version?") {
  Fail(ErrorCode::kConfig, "{}: '{}' {}: {}", config.where, config.argv[0], what, next);
}

// "" if it is not set.
std::string TextOf(const ExecConfig& config, const Json& status, const char* key) {
  const auto found = status.find(key);
  if (found == status.end() || found->is_null()) return "";
  if (!found->is_string())
    FailAnswer(config, fmt::format("answered with a status.{} that is not text", key));
  return found->get<std::string>();
}

void CheckVersion(const ExecConfig& config, const Json& answer) {
  if (!answer.is_object() || !answer.contains("kind") || answer["kind"] != kKind)
    FailAnswer(config, "did not write an ExecCredential to its stdout");
  const auto version = answer.find("apiVersion");
  if (version != answer.end() && *version == config.api_version) return;
  const std::string text =
      version != answer.end() && version->is_string() ? version->get<std::string>() : "";
  FailAnswer(config,
             fmt::format("answered as apiVersion '{}', but it is configured as {}",
                         Escape(ShortText(text, 100)), config.api_version),
             "make both the same, by apiVersion there or by another version of the program");
}

}  // namespace

std::string ExecInfo(const ExecConfig& config, bool interactive) {
  Json spec = {{"interactive", interactive}};
  if (!config.cluster.empty()) spec["cluster"] = Json::parse(config.cluster);
  return Json{{"apiVersion", config.api_version}, {"kind", kKind}, {"spec", std::move(spec)}}
      .dump();
}

ExecAnswer ParseExecAnswer(const ExecConfig& config, const std::string& output,
                           double unix_seconds) {
  const Json json = Json::parse(output, nullptr, /*allow_exceptions=*/false);
  CheckVersion(config, json);
  const auto status = json.find("status");
  if (status == json.end() || !status->is_object()) FailAnswer(config, "answered without a status");
  ExecAnswer answer;
  answer.credential.token = TextOf(config, *status, "token");
  answer.credential.client_certificate_pem = TextOf(config, *status, "clientCertificateData");
  answer.credential.client_key_pem = TextOf(config, *status, "clientKeyData");
  const Credential& credential = answer.credential;
  const bool certificate = !credential.client_certificate_pem.empty();
  if (certificate != !credential.client_key_pem.empty())
    FailAnswer(config, "answered with a certificate or a key, not with both");
  if (!certificate && credential.token.empty())
    FailAnswer(config, "answered with neither a token nor a client certificate");
  if (!credential.token.empty() && !IsToken(credential.token))
    FailAnswer(config, "answered with a token that has blanks or other characters");
  const std::string where = fmt::format("{}: '{}': status.", config.where, config.argv[0]);
  if (certificate)
    CheckClientCertificate(credential.client_certificate_pem, where + "clientCertificateData",
                           credential.client_key_pem, where + "clientKeyData", unix_seconds);
  if (const std::string expires = TextOf(config, *status, "expirationTimestamp");
      !expires.empty()) {
    answer.expires = ParseTime(expires);
    if (!answer.expires)
      FailAnswer(config, fmt::format("answered with an expirationTimestamp '{}' that is no time",
                                     Escape(ShortText(expires, 100))));
  }
  return answer;
}

}  // namespace renzan::cluster::kubernetes
