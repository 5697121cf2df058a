#pragma once

#include "renzan/base/error.h"

namespace renzan {

struct Split;

// An error of training with the dense feature whose values are the largest in front, if they are so
// large that they explain why it diverged (kSoftware); any other error as it is.
Error ExplainDivergence(const Error& error, const Split& train);

}  // namespace renzan
