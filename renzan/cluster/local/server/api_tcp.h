#pragma once

// The daemon's TCP socket and the token that authenticates its clients. Thread-safe.

#include <string>

namespace renzan::cluster::local {

// Listens on "HOST:PORT" ("[::1]:7070"; port 0: any free port). Throws Error kUsage for an invalid
// address, kCantCreate if it cannot listen.
int ListenOnTcp(const std::string& host_port);

// "http://127.0.0.1:7070", the URL of a listening TCP socket.
std::string UrlOf(int listen_fd);

// Whether it is a TCP connection.
bool IsTcp(int fd);

// The token in the file `path` (mode 0600). Without the file, creates it with 256 random bits.
// Throws Error kData for an invalid file, kNoPermission if others can read it.
std::string LoadToken(const std::string& path);

// Whether an "Authorization" header (null: none) has the token. Compares in constant time.
bool HasToken(const char* authorization, const std::string& token);

}  // namespace renzan::cluster::local
