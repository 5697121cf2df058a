#pragma once

// The requirements on every communicator, as one function that a test runs on each worker.

#include "renzan/comm/communicator.h"

namespace renzan {

// Runs every operation with parts of many sizes, from empty to several MiB, and compares each byte.
// Throws an Error (kSoftware) that names the operation and the part that differs.
void CheckConformance(Communicator& communicator);

}  // namespace renzan
