#pragma once

// What the wire has lost of the gradients of pooled embeddings (comm.backward: fp16), over all
// workers, and what to do about it.

#include <optional>
#include <string>

#include "renzan/comm/communicator.h"
#include "renzan/comm/wire_range.h"

namespace renzan {

// Sums the workers' counts. Every rank makes the same calls.
WireRange MergeRanges(Communicator& comm, const WireRange& mine);

// Nothing while few gradients are lost. `scale` is what they were multiplied by.
std::optional<std::string> GradientRangeAdvice(const WireRange& range, float scale);

}  // namespace renzan
