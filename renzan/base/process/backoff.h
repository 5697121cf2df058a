#pragma once

// How long to wait before something that failed is tried again. A pure function.

namespace renzan {

// `first` before the first repetition, twice as long before each further one, at most `longest`;
// `earlier` repetitions have been made. In whatever unit `first` and `longest` have.
double Backoff(double first, int earlier, double longest);

}  // namespace renzan
