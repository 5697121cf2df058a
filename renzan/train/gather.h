#pragma once

// Small values between workers. Every rank makes the same calls.

#include <string>
#include <vector>

#include "renzan/comm/communicator.h"

namespace renzan {

// Every rank's text, by rank, on every rank.
std::vector<std::string> GatherStrings(Communicator& comm, const std::string& mine);

// Rank 0's text on every rank.
std::string BroadcastString(Communicator& comm, const std::string& text);

}  // namespace renzan
