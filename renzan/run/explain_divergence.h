#pragma once

#include "renzan/quality/finiteness.h"

namespace renzan {

struct Split;

// The error with the dense feature whose values are the largest in front, if they are so large that
// they explain why training diverged; else as it is.
Error ExplainDivergence(const DivergedError& error, const Split& train);

}  // namespace renzan
