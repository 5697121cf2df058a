#pragma once

// What the verbs that ask the job system's daemon have in common.

#include <string>
#include <string_view>

#include "renzan/cluster/client/client.h"

namespace CLI {
class App;
}

namespace renzan {

namespace client = cluster::client;

// --socket PATH or http://HOST:PORT.
void AddSocketOption(CLI::App& verb, std::string& socket);

// The variables that say where a daemon is, as client::Environment wants them.
const char* EnvironmentVariable(const char* name);

// What --socket said, else what the environment says.
client::Endpoint EndpointOf(const std::string& flag);

// An answer of the daemon, indented, on stdout.
void PrintAnswer(const std::string& json);

int64_t UnixMs();

}  // namespace renzan
