#pragma once

// Where this machine's daemon is.

#include <string>
#include <string_view>

#include "renzan/cluster/backend/backend.h"
#include "renzan/cluster/client/client.h"

namespace CLI {
class App;
}

namespace renzan {

namespace client = cluster::client;

// --socket PATH or https://HOST:PORT.
void AddSocketOption(CLI::App& verb, std::string& socket);

// An environment variable, as a client::Environment.
const char* EnvironmentVariable(const char* name);

// The value of --socket, else from the environment. Throws Error kNoPermission if there is no token
// for an address.
client::Endpoint EndpointOf(const std::string& flag);

// Of the history in a daemon's status: "1234 ended jobs since 2026-01-31 14:03:59, 12MiB in
// state.db", and how long they are kept.
std::string HistoryText(const cluster::Document& history);
std::string RetentionText(const cluster::Document& history);

}  // namespace renzan
