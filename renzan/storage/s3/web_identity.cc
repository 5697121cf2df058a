#include "renzan/storage/s3/web_identity.h"

#include <pugixml.hpp>
#include <string_view>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/storage/s3/endpoint.h"

namespace renzan::s3 {
namespace {

constexpr const char* kTokenVariable = "AWS_WEB_IDENTITY_TOKEN_FILE";
constexpr const char* kStsEndpointVariable = "AWS_ENDPOINT_URL_STS";
constexpr double kStsTimeoutSeconds = 10;

std::string ReadToken(const std::string& path) {
  std::string token;
  try {
    token = ReadFile(path);
  } catch (const Error& error) {
    throw Error(
        error.code(),
        fmt::format("{}: {}: check what should write the token there, or unset the variable "
                    "to use other credentials",
                    kTokenVariable, error.what()));
  }
  while (token.ends_with('\n') || token.ends_with('\r')) token.pop_back();
  if (!IsKeyText(token))
    Fail(ErrorCode::kConfig,
         "{}: {} does not hold a token: it is empty or has spaces or control characters: check "
         "what writes it",
         kTokenVariable, path);
  return token;
}

// The service's answer may quote what it was sent.
std::string Without(const std::string& secret, std::string text) {
  constexpr std::string_view kInstead = "...";
  for (size_t at = 0; (at = text.find(secret, at)) != std::string::npos; at += kInstead.size())
    text.replace(at, secret.size(), kInstead);
  return text;
}

// "AccessDenied: Not authorized to ..."; empty if the answer is something else.
std::string ErrorOf(const pugi::xml_document& document) {
  const pugi::xml_node root = document.document_element();
  const bool is_bare = std::string_view(root.name()) == "Error";
  const pugi::xml_node error = is_bare ? root : root.child("Error");
  if (!error) return "";
  return fmt::format("{}: {}", error.child_value("Code"), error.child_value("Message"));
}

}  // namespace

std::optional<TemporaryCredentials> CredentialsOfWebIdentity(const Environment& environment,
                                                             const std::string& region,
                                                             HttpSender& http) {
  const auto token_file = environment(kTokenVariable);
  if (!token_file) return std::nullopt;
  const auto role = environment("AWS_ROLE_ARN");
  if (!role)
    Fail(ErrorCode::kConfig, "{} is set, but AWS_ROLE_ARN is not: set it to the role's ARN",
         kTokenVariable);
  const std::string token = ReadToken(*token_file);
  const auto own = environment(kStsEndpointVariable);
  const std::string endpoint =
      own ? CheckedEndpoint(*own, kStsEndpointVariable) : AwsEndpoint("sts", region);
  const std::string service =
      fmt::format("{}, asked for the credentials of AWS_ROLE_ARN,", endpoint);

  const std::string query = fmt::format(
      "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn={}&RoleSessionName={}&"
      "WebIdentityToken={}",
      UriEncode(*role, false),
      UriEncode(environment("AWS_ROLE_SESSION_NAME").value_or("renzan"), false),
      UriEncode(token, false));
  const HttpAnswer answer = SendTo(
      service, http,
      {.method = "GET", .url = endpoint + "/?" + query, .timeout_seconds = kStsTimeoutSeconds},
      "check AWS_ENDPOINT_URL_STS and AWS_REGION");
  pugi::xml_document document;
  document.load_buffer(answer.body.data(), answer.body.size());
  if (answer.status != 200)
    FailAsRefused(service, answer.status, Without(token, ErrorOf(document)),
                  "check AWS_ROLE_ARN, the role's trust policy and the token");
  const pugi::xml_node found = document.child("AssumeRoleWithWebIdentityResponse")
                                   .child("AssumeRoleWithWebIdentityResult")
                                   .child("Credentials");
  if (!found)
    Fail(ErrorCode::kIo, "{} answers, but not as STS does: check AWS_ENDPOINT_URL_STS", service);
  return MakeTemporary({.access_key_id = found.child_value("AccessKeyId"),
                        .secret_access_key = found.child_value("SecretAccessKey"),
                        .session_token = found.child_value("SessionToken")},
                       found.child_value("Expiration"), endpoint);
}

}  // namespace renzan::s3
