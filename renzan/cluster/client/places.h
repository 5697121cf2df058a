#pragma once

// Where a daemon keeps its state and where it listens, unless a command line says otherwise. Pure
// functions of the environment that they are given.

#include <functional>
#include <string>

namespace renzan::cluster::client {

// A variable's value, or null.
using Environment = std::function<const char*(const char* name)>;

// $RENZAN_STATE_DIR, else $XDG_STATE_HOME/renzan, else ~/.local/state/renzan. Empty variables do
// not count. Throws Error kConfig where none of them and no $HOME is set.
std::string StateDirectory(const Environment& environment);

// $RENZAN_SOCKET, else STATE/socket.
std::string SocketPath(const Environment& environment, const std::string& state_directory);

// $RENZAN_TOKEN_FILE, else STATE/token: what lets in whoever comes by TCP.
std::string TokenPath(const Environment& environment, const std::string& state_directory);

// "http://HOST:PORT" in the place of a socket's path.
bool IsTcpAddress(const std::string& socket);

// Throws Error kConfig for a path that the kernel has no room for in a socket's address.
void CheckSocketPath(const std::string& path);

}  // namespace renzan::cluster::client
