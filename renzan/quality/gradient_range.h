#pragma once

// Overflow and underflow of the gradients of pooled embeddings on the wire (comm.backward: fp16),
// over all workers, and advice about it.

#include <optional>
#include <string>

#include "renzan/comm/communicator.h"
#include "renzan/comm/wire_range.h"

namespace renzan {

// Sums the workers' counts. Every rank makes the same calls.
WireRange MergeRanges(Communicator& comm, const WireRange& mine);

// Nothing if few gradients overflowed or underflowed. `scale`: their scale on the wire.
std::optional<std::string> GradientRangeAdvice(const WireRange& range, float scale);

}  // namespace renzan
