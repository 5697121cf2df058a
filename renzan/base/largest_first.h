#pragma once

// The order of tasks of very different length, so that threads end at about the same time.

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace renzan {

// The numbers 0 to n - 1 by descending size(i).
template <class Size>
std::vector<size_t> LargestFirst(size_t n, const Size& size) {
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return size(a) > size(b); });
  return order;
}

}  // namespace renzan
