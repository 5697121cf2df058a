#pragma once

// Records what the threads of this process do when: named spans of time. A span costs about a
// nanosecond while nothing is recorded and some tens while something is. Thread-safe, but one trace
// at a time.

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace renzan {

// Rows taking steps that they have missed (embedding/idle_rows.h), in a step's phases and outside.
inline constexpr const char* kCatchUpSpan = "catch up";

struct TraceEvent {
  const char* name;
  int thread;                // index into Trace::threads
  int64_t begin_ns, end_ns;  // of the monotonic clock
};

struct Trace {
  std::vector<std::string> threads;  // their names
  std::vector<TraceEvent> events;    // of each thread, in the order in which they ended
};

void StartTrace();

// The spans that began and ended since StartTrace().
Trace StopTrace();

// Names the calling thread in traces.
void NameTraceThread(const std::string& name);

// Records its own lifetime. `name` must outlive the trace.
class TraceSpan {
 public:
  explicit TraceSpan(const char* name) {
    if (recording.load(std::memory_order_relaxed)) Begin(name);
  }
  ~TraceSpan() {
    if (name_ != nullptr) End();
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

  static std::atomic<bool> recording;

 private:
  void Begin(const char* name);
  void End();

  const char* name_ = nullptr;
  int64_t begin_ns_ = 0;
};

}  // namespace renzan
