#pragma once

// A fixed team of threads for data-parallel loops. Nothing is ever reduced across threads here, so
// a loop whose items are independent gives the same bits with any team and any timing.
//
// The caller's thread is member 0. One loop at a time; not re-entrant.
//
// Members look for the next loop for a moment before they sleep, because in a training step loops
// follow each other within microseconds. The moment becomes shorter where that is in vain, and a
// team does not look at all while the teams of this process are together larger than the CPUs that
// it may use: whoever spins there takes time from whoever works, and in a container from the quota
// of all.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace renzan {

class ThreadPool {
 public:
  explicit ThreadPool(int num_threads);
  // The same where only so many CPUs may be used.
  ThreadPool(int num_threads, int usable_cpus);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return num_threads_; }

  // Calls body(thread) once on every member and returns when all are done. The first exception (by
  // member number) is thrown again here.
  void RunOnAll(const std::function<void(int thread)>& body);

  // Splits [0, n) into one contiguous, nearly equal range per member: body(thread, begin, end).
  // Empty ranges are not called.
  void ParallelRanges(size_t n,
                      const std::function<void(int thread, size_t begin, size_t end)>& body);

  // Calls body(thread, i) once for every i in [0, n); whoever is free takes the next i.
  void ParallelTasks(size_t n, const std::function<void(int thread, size_t i)>& body);

 private:
  struct State;
  int num_threads_;
  std::unique_ptr<State> state_;
};

}  // namespace renzan
