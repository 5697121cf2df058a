#pragma once

// What every communicator must do, as one function that a test runs on each of its workers.

#include "renzan/comm/communicator.h"

namespace renzan {

// Runs every operation over parts of many sizes, also none and several MiB, and compares each byte.
// Throws Error (kSoftware) that names the operation and the part that differ.
void CheckConformance(Communicator& communicator);

}  // namespace renzan
