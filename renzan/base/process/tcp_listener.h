#pragma once

// A listening TCP socket. Thread-safe.

#include <string>

namespace renzan {

// Listens on "HOST:PORT" ("[::1]:7070"; port 0: any free port). Throws Error kUsage for an invalid
// address (`option` is the user's option that gave it), kCantCreate if it cannot listen.
int ListenOnTcp(const std::string& host_port, const char* option = "--listen");

// "http://127.0.0.1:7070", the URL of a listening TCP socket.
std::string UrlOf(int listen_fd);

}  // namespace renzan
