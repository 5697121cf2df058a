#include "renzan/base/backoff.h"

#include <algorithm>
#include <cmath>

namespace renzan {

double Backoff(double first, int earlier, double longest) {
  return std::min(std::ldexp(first, earlier), longest);
}

}  // namespace renzan
