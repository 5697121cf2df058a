#include "renzan/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "renzan/base/cpus.h"
#include "renzan/base/error.h"
#include "renzan/base/trace.h"

namespace renzan {
namespace {

// Members of all teams in this process, and OtherThreads. In tests, ranks are threads with a team
// each.
std::atomic<int> members = 0;

// Whatever was requested: who starts more threads than that may spin while others are idle.
int AvailableCpus() {
  CpuBudget budget = ReadCpuBudget();
  budget.requested = CpuBudget().requested;
  return UsableCpus(budget);
}

}  // namespace

struct ThreadPool::State {
  // Spins for something that is about to happen, yielding the CPU in between. Success makes the
  // next spin longer, failure makes it shorter.
  class Spinner {
   public:
    explicit Spinner(int usable_cpus) : usable_cpus_(usable_cpus) {}

    // Whether `ready()` became true.
    template <class Ready>
    bool Spin(const Ready& ready) {
      if (members.load(std::memory_order_relaxed) > usable_cpus_) return false;
      for (int look = 0; look < looks_; ++look) {
        if (ready()) {
          looks_ = std::min(2 * looks_, kMostLooks);
          return true;
        }
        std::this_thread::yield();
      }
      looks_ = std::max(looks_ / 2, kFewestLooks);
      return false;
    }

   private:
    static constexpr int kMostLooks = 2000, kFewestLooks = 20;
    const int usable_cpus_;
    int looks_ = kMostLooks;
  };

  State(int num_threads, int usable_cpus)
      : num_threads(num_threads), usable_cpus(usable_cpus), caller(usable_cpus) {
    members += num_threads;
  }
  ~State() { members -= num_threads; }

  const int num_threads, usable_cpus;
  Spinner caller;  // used by member 0 to wait for the end of a loop
  std::mutex mutex;
  std::condition_variable work_ready, work_done;
  const FunctionRef<void(int)>* body = nullptr;
  std::atomic<uint64_t> generation = 0;
  std::atomic<int> remaining = 0;
  bool stop = false;
  std::vector<std::exception_ptr> errors;
  std::vector<std::thread> threads;

  void Call(int thread) {
    try {
      (*body)(thread);
    } catch (...) {
      errors[static_cast<size_t>(thread)] = std::current_exception();
    }
  }

  void Loop(int thread) {
    NameTraceThread(fmt::format("worker thread {}", thread));
    uint64_t seen = 0;
    Spinner spinner(usable_cpus);
    for (;;) {
      spinner.Spin([&] { return generation.load(std::memory_order_acquire) != seen; });
      {
        std::unique_lock lock(mutex);
        work_ready.wait(lock, [&] { return stop || generation.load() != seen; });
        if (stop) return;
        seen = generation.load();
      }
      Call(thread);
      if (remaining.fetch_sub(1) == 1) {
        std::lock_guard lock(mutex);
        work_done.notify_one();
      }
    }
  }
};

ThreadPool::ThreadPool(int num_threads) : ThreadPool(num_threads, AvailableCpus()) {}

ThreadPool::ThreadPool(int num_threads, int usable_cpus)
    : num_threads_(num_threads), state_(std::make_unique<State>(num_threads, usable_cpus)) {
  CHECK(num_threads >= 1);
  state_->errors.resize(static_cast<size_t>(num_threads));
  try {
    for (int thread = 1; thread < num_threads; ++thread)
      state_->threads.emplace_back([this, thread] { state_->Loop(thread); });
  } catch (const std::system_error& error) {
    const size_t started = state_->threads.size();
    {
      std::lock_guard lock(state_->mutex);
      state_->stop = true;
    }
    state_->work_ready.notify_all();
    for (std::thread& thread : state_->threads) thread.join();
    Fail(ErrorCode::kOsError, "cannot start thread {} of {}: {}", started + 2, num_threads,
         error.what());
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->work_ready.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

void ThreadPool::RunOnAll(FunctionRef<void(int)> body) {
  State& state = *state_;
  for (std::exception_ptr& error : state.errors) error = nullptr;
  state.body = &body;
  if (num_threads_ > 1) {
    {
      std::lock_guard lock(state.mutex);
      state.remaining = num_threads_ - 1;
      state.generation.fetch_add(1);
    }
    state.work_ready.notify_all();
  }
  state.Call(0);
  if (num_threads_ > 1) {
    state.caller.Spin([&] { return state.remaining.load() == 0; });
    std::unique_lock lock(state.mutex);
    state.work_done.wait(lock, [&] { return state.remaining.load() == 0; });
  }
  for (const std::exception_ptr& error : state.errors)
    if (error) std::rethrow_exception(error);
}

void ThreadPool::ParallelRanges(size_t n, FunctionRef<void(int, size_t, size_t)> body) {
  const size_t team = static_cast<size_t>(num_threads_);
  RunOnAll([&](int thread) {
    const size_t me = static_cast<size_t>(thread);
    const size_t begin = n * me / team, end = n * (me + 1) / team;
    if (begin < end) body(thread, begin, end);
  });
}

void ThreadPool::ParallelTasks(size_t n, FunctionRef<void(int, size_t)> body) {
  std::atomic<size_t> next = 0;
  RunOnAll([&](int thread) {
    for (size_t i = next.fetch_add(1); i < n; i = next.fetch_add(1)) body(thread, i);
  });
}

OtherThreads::OtherThreads(int num_threads) : num_threads_(num_threads) { members += num_threads; }
OtherThreads::~OtherThreads() { members -= num_threads_; }

}  // namespace renzan
