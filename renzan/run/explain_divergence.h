#pragma once

#include "renzan/quality/finiteness.h"

namespace renzan {

struct Split;

// The error with what explains in the data why training diverged in front: the dense feature whose
// values are the largest, if they are too large, or sample weights that are; else as it is.
Error ExplainDivergence(const DivergedError& error, const Split& train);

}  // namespace renzan
