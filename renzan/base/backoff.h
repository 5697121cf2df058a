#pragma once

// Exponential backoff between retries. A pure function.

namespace renzan {

// The delay before the next retry, after `earlier` retries: starts at `first`, doubles each time,
// at most `longest`. Any unit.
double Backoff(double first, int earlier, double longest);

}  // namespace renzan
