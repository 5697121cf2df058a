#pragma once

#include "renzan/quality/finiteness.h"

namespace renzan {

struct OptimizerConfig;
struct Split;

// Returns the error prefixed with what explains in the data why training diverged: the dense
// feature with the largest values, or sample weights, if they are too large; otherwise the error as
// it is.
Error ExplainDivergence(const DivergedError& error, const Split& train,
                        const OptimizerConfig& optimizer);

}  // namespace renzan
