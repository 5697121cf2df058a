#pragma once

// What an operator hands to a user of a daemon over TCP: where it is, how to recognise it, and who
// the user is. A file of its own: RENZAN_TOKEN_FILE.

#include <string>

namespace renzan::cluster::client {

struct Credential {
  std::string address;        // https://HOST:PORT
  std::string pin;            // of the daemon's public key: "sha256//" and Base64
  std::string user, expires;  // for people
  std::string token;
};

// A JSON object on several lines.
std::string CredentialText(const Credential& credential);

// Throws Error kNoPermission if the file cannot be read or holds no credential.
Credential ReadCredential(const std::string& path);

}  // namespace renzan::cluster::client
