#pragma once

// The daemon's address for whoever comes by TCP, and the token that lets them in. Functions are
// thread-safe.

#include <string>

namespace renzan::cluster::local {

// Listens on "HOST:PORT" ("[::1]:7070"; port 0: any that is free). Throws Error kUsage for what is
// not an address, kCantCreate when it cannot be had.
int ListenOnTcp(const std::string& host_port);

// "http://127.0.0.1:7070" of a socket that listens by TCP.
std::string UrlOf(int listen_fd);

// Whether a connection came by TCP.
bool IsTcp(int fd);

// The token in the file `path`, mode 0600; a new random one, of 256 bits, where there is none.
// Throws Error kData for a file that holds none, kNoPermission for one that others may read.
std::string LoadToken(const std::string& path);

// Whether an "Authorization" header (null: none came) carries the token. Takes as long whatever is
// wrong with it.
bool CarriesToken(const char* authorization, const std::string& token);

}  // namespace renzan::cluster::local
