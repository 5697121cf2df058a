#include "renzan/storage/s3/instance_metadata.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "renzan/base/ascii.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/storage/s3/endpoint.h"

namespace renzan::s3 {
namespace {

constexpr const char* kSwitch = "RENZAN_S3_INSTANCE_METADATA";
constexpr const char* kMetadataEndpointVariable = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
constexpr std::string_view kRolesPath = "/latest/meta-data/iam/security-credentials/";
// The service is local to the machine.
constexpr double kMetadataTimeoutSeconds = 2;

class MetadataService {
 public:
  MetadataService(std::string endpoint, HttpSender& http)
      : endpoint_(std::move(endpoint)), http_(http) {}

  std::string Describe() const { return "the instance's metadata service at " + endpoint_; }

  void TakeToken() {
    const HttpAnswer answer =
        Send("PUT", "/latest/api/token", {{"X-aws-ec2-metadata-token-ttl-seconds", "21600"}});
    if (answer.status != 200 || !IsKeyText(answer.body))
      FailAsRefused(Describe(), answer.status, "asked for a token",
                    "enable version 2 of the service, or unset RENZAN_S3_INSTANCE_METADATA");
    token_ = answer.body;
  }

  HttpAnswer Get(const std::string& path) {
    return Send("GET", path, {{"X-aws-ec2-metadata-token", token_}});
  }

 private:
  HttpAnswer Send(const std::string& method, const std::string& path,
                  std::vector<std::pair<std::string, std::string>> headers) {
    return SendTo(Describe(), http_,
                  {.method = method,
                   .url = endpoint_ + path,
                   .headers = std::move(headers),
                   .timeout_seconds = kMetadataTimeoutSeconds},
                  "unset RENZAN_S3_INSTANCE_METADATA if this machine is not in a cloud; in a "
                  "container, raise the instance's metadata hop limit to 2");
  }

  const std::string endpoint_;
  HttpSender& http_;
  std::string token_;
};

// The name becomes part of a URL.
bool IsRoleName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return IsLetter(c) || IsDigit(c) || std::string_view("+=,.@-_").find(c) != std::string::npos;
  });
}

std::string RoleOf(MetadataService& service) {
  const HttpAnswer answer = service.Get(std::string(kRolesPath));
  if (answer.status != 200 && answer.status != 404)
    FailAsRefused(service.Describe(), answer.status, "asked for the role", "try again");
  const std::string role = answer.body.substr(0, answer.body.find_first_of("\r\n"));
  if (answer.status == 404 || role.empty())
    Fail(ErrorCode::kConfig,
         "this instance has no role, says {}: attach one that may use the bucket, or set "
         "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
         service.Describe());
  if (!IsRoleName(role))
    Fail(ErrorCode::kIo, "{} names a role '{}', which cannot be one", service.Describe(),
         Escape(role));
  return role;
}

std::string Text(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

std::optional<TemporaryCredentials> CredentialsOfInstance(const Environment& environment,
                                                          HttpSender& http) {
  const std::string asked = environment(kSwitch).value_or("0");
  if (asked == "0") return std::nullopt;
  if (asked != "1") Fail(ErrorCode::kConfig, "{}: '{}' is neither 0 nor 1", kSwitch, Escape(asked));
  MetadataService service(
      CheckedEndpoint(environment(kMetadataEndpointVariable).value_or("http://169.254.169.254"),
                      kMetadataEndpointVariable),
      http);
  service.TakeToken();
  const std::string role = RoleOf(service);
  const HttpAnswer answer = service.Get(std::string(kRolesPath) + role);
  const std::string asked_for = fmt::format("asked for the credentials of role {}", role);
  if (answer.status != 200)
    FailAsRefused(service.Describe(), answer.status, asked_for, "try again");
  const nlohmann::json object = nlohmann::json::parse(answer.body, nullptr, false);
  if (!object.is_object())
    Fail(ErrorCode::kIo, "{}, {}, does not answer with a JSON object", service.Describe(),
         asked_for);
  const std::string code = Text(object, "Code");
  if (!code.empty() && code != "Success")
    Fail(ErrorCode::kNoPermission, "{}, {}, answers {}: check the role's trust policy",
         service.Describe(), asked_for, Escape(code));
  return MakeTemporary({.access_key_id = Text(object, "AccessKeyId"),
                        .secret_access_key = Text(object, "SecretAccessKey"),
                        .session_token = Text(object, "Token")},
                       Text(object, "Expiration"), service.Describe());
}

}  // namespace renzan::s3
