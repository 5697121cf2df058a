#pragma once

// A fixed team of threads for data-parallel loops. Nothing is reduced across threads, so a loop
// over independent items gives the same bits with any team size and timing.
//
// The caller's thread is member 0. One loop at a time; not re-entrant.
//
// Members spin briefly for the next loop before they sleep, because the loops of a training step
// follow each other within microseconds. They spin for less time when it does not pay off, and not
// at all while this process has more busy threads (members of teams and OtherThreads) than CPUs:
// spinning would take CPU time (in a container, quota) from threads that work.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "renzan/base/function_ref.h"

namespace renzan {

class ThreadPool {
 public:
  explicit ThreadPool(int num_threads);
  // The same if only `usable_cpus` may be used.
  ThreadPool(int num_threads, int usable_cpus);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return num_threads_; }

  // Calls body(thread) once on every member and returns when all are done. Rethrows the first
  // exception (by member number).
  void RunOnAll(FunctionRef<void(int thread)> body);

  // Splits [0, n) into one contiguous, nearly equal range per member: body(thread, begin, end).
  // Empty ranges are skipped.
  void ParallelRanges(size_t n, FunctionRef<void(int thread, size_t begin, size_t end)> body);

  // Calls body(thread, i) once for every i in [0, n); free members take the next i.
  void ParallelTasks(size_t n, FunctionRef<void(int thread, size_t i)> body);

 private:
  struct State;
  int num_threads_;
  std::unique_ptr<State> state_;
};

// While it exists, counts this many busy threads that belong to no team.
class OtherThreads {
 public:
  explicit OtherThreads(int num_threads);
  ~OtherThreads();
  OtherThreads(const OtherThreads&) = delete;
  OtherThreads& operator=(const OtherThreads&) = delete;

 private:
  int num_threads_;
};

}  // namespace renzan
