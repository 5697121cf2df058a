#pragma once

// Default paths of a daemon's state, socket and token. Pure functions of the given environment.

#include <functional>
#include <string>

namespace renzan::cluster::client {

// A variable's value, or null.
using Environment = std::function<const char*(const char* name)>;

// $RENZAN_STATE_DIR, else $XDG_STATE_HOME/renzan, else ~/.local/state/renzan. Empty variables count
// as unset. Throws Error kConfig if none of them nor $HOME is set.
std::string StateDirectory(const Environment& environment);

// $RENZAN_SOCKET, else STATE/socket.
std::string SocketPath(const Environment& environment, const std::string& state_directory);

// $RENZAN_TOKEN_FILE, else STATE/token: the token for TCP.
std::string TokenPath(const Environment& environment, const std::string& state_directory);

// Whether it is "http://HOST:PORT" instead of a socket's path.
bool IsTcpAddress(const std::string& socket);

// Throws Error kConfig for a path that is too long for a socket's address.
void CheckSocketPath(const std::string& path);

}  // namespace renzan::cluster::client
