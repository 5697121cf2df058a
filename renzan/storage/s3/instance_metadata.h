#pragma once

// The credentials of the role that a cloud gave the machine, from its metadata service, version 2
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-metadata-security-credentials.html).

#include "renzan/base/http/http.h"
#include "renzan/storage/s3/settings.h"
#include "renzan/storage/s3/temporary_credentials.h"

namespace renzan::s3 {

// Nothing unless RENZAN_S3_INSTANCE_METADATA is 1. Throws Error kConfig if the machine has no role
// or a variable is invalid; kUnavailable, kNoPermission or kIo depending on the service's answer.
std::optional<TemporaryCredentials> CredentialsOfInstance(const Environment& environment,
                                                          HttpSender& http);

}  // namespace renzan::s3
