#pragma once

// Default paths of a daemon's state and socket, and its address over TCP. Pure functions of the
// given environment.

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

// $RENZAN_TOKEN_FILE: a Credential, for TCP; "" if there is none.
std::string TokenFile(const Environment& environment);

// Whether it is a URL instead of a socket's path, and "https://HOST:PORT", which a daemon serves.
bool IsUrl(const std::string& socket);
bool IsTcpAddress(const std::string& socket);

// Throws Error kConfig for a path that is too long for a socket's address.
void CheckSocketPath(const std::string& path);

}  // namespace renzan::cluster::client
