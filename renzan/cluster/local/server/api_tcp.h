#pragma once

// The token that authenticates clients of the daemon's TCP socket. Thread-safe.

#include <string>

namespace renzan::cluster::local {

// Whether it is a TCP connection.
bool IsTcp(int fd);

// The token in the file `path` (mode 0600). Without the file, creates it with 256 random bits.
// Throws Error kData for an invalid file, kNoPermission if others can read it.
std::string LoadToken(const std::string& path);

// Whether an "Authorization" header (null: none) contains the token. Compares in constant time.
bool HasToken(const char* authorization, const std::string& token);

}  // namespace renzan::cluster::local
