#pragma once

// How one worker's part of a joint operation ended, exchanged so that all workers act on the same
// result. Every rank makes the same calls.

#include <optional>
#include <string>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/comm/communicator.h"

namespace renzan {

struct Outcome {
  std::optional<Error> error;  // none: it succeeded
  std::string result = {};     // empty when it failed
};

// Every rank's outcome, by rank, on every rank.
std::vector<Outcome> GatherOutcomes(Communicator& comm, const Outcome& mine);

// Rank 0's outcome on every rank.
Outcome BroadcastOutcome(Communicator& comm, const Outcome& mine);

}  // namespace renzan
