#pragma once

#include "renzan/quality/finiteness.h"

namespace renzan {

struct Split;

// Returns the error prefixed with the dense feature that has the largest values, if they are large
// enough to explain why training diverged; otherwise the error as it is.
Error ExplainDivergence(const DivergedError& error, const Split& train);

}  // namespace renzan
