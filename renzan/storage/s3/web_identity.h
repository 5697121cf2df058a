#pragma once

// STS AssumeRoleWithWebIdentity
// (https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html): a token
// that a cluster or a CI system wrote to a file is exchanged for credentials of a role.

#include "renzan/base/http/http.h"
#include "renzan/storage/s3/settings.h"
#include "renzan/storage/s3/temporary_credentials.h"

namespace renzan::s3 {

// Nothing if AWS_WEB_IDENTITY_TOKEN_FILE is not set. Throws Error kConfig if AWS_ROLE_ARN is not
// set, or the token or AWS_ENDPOINT_URL_STS is invalid; kNoInput if the token cannot be read;
// kUnavailable, kNoPermission or kIo depending on the service's answer.
std::optional<TemporaryCredentials> CredentialsOfWebIdentity(const Environment& environment,
                                                             const std::string& region,
                                                             HttpSender& http);

}  // namespace renzan::s3
