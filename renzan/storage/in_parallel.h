#pragma once

// Requests to a store mostly wait, so many are made at once.

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace renzan {

inline constexpr size_t kRequestsAtOnce = 16;

// Calls body(i) for i in [0, n) on several threads, including this one. Rethrows the first
// exception; some calls may then not have been made.
template <typename Body>
void InParallel(size_t n, const Body& body, size_t threads = kRequestsAtOnce) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    for (size_t i; (i = next++) < n;) {
      try {
        body(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = n;
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (size_t i = 1; i < std::min(threads, n); ++i) others.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace renzan
