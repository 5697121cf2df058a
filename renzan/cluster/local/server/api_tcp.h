#pragma once

// What the daemon has for clients over TCP: a key that they know it by. Thread-safe.

#include <string>
#include <string_view>

#include "renzan/base/tls/tls_credentials.h"

namespace renzan::cluster::local {

// Whether it is a TCP connection.
bool IsTcp(int fd);

// The token of an "Authorization" header; "" if it has none.
std::string BearerOf(std::string_view authorization);

// "https://127.0.0.1:7070"; with this machine's name where the socket listens on all addresses.
std::string UrlForClients(int listen_fd);

// Where the daemon's key and its users' tokens are: makes it, for its owner only.
std::string MakePrivateDirectory(const std::string& state_dir);

struct TcpIdentity {
  TlsCredentials tls;
  std::string pin;  // clients check it (PublicKeyPin())
};

// With the key in the file `path` (mode 0600); without the file, makes a new key. The certificate
// is made anew each time, so that it never expires: clients know the key, not the certificate.
// Throws Error kData for an invalid file, kNoPermission if others can read it.
TcpIdentity LoadTcpIdentity(const std::string& path, double unix_seconds);

}  // namespace renzan::cluster::local
