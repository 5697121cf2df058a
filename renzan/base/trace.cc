#include "renzan/base/trace.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

namespace renzan {
namespace {

struct ThreadLog {
  std::mutex mutex;
  std::string name;
  std::vector<TraceEvent> events;
};

struct Logs {
  std::mutex mutex;
  std::vector<std::shared_ptr<ThreadLog>> all;
  int threads = 0;  // so far
};

// Its thread has ended and recorded nothing.
bool IsOfNoUse(const std::shared_ptr<ThreadLog>& log) {
  std::lock_guard lock(log->mutex);
  return log.use_count() == 1 && log->events.empty();
}

Logs& AllLogs() {
  static Logs logs;
  return logs;
}

std::atomic<int64_t> started_ns = 0;

ThreadLog& LogOfThisThread() {
  thread_local const std::shared_ptr<ThreadLog> log = [] {
    auto mine = std::make_shared<ThreadLog>();
    Logs& logs = AllLogs();
    std::lock_guard lock(logs.mutex);
    std::erase_if(logs.all, IsOfNoUse);
    mine->name = fmt::format("thread {}", logs.threads++);
    logs.all.push_back(mine);
    return mine;
  }();
  return *log;
}

int64_t Now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

}  // namespace

std::atomic<bool> TraceSpan::recording = false;

void StartTrace() {
  started_ns = Now();
  Logs& logs = AllLogs();
  std::lock_guard lock(logs.mutex);
  for (const auto& log : logs.all) {
    std::lock_guard log_lock(log->mutex);
    log->events.clear();
  }
  TraceSpan::recording = true;
}

Trace StopTrace() {
  TraceSpan::recording = false;
  Logs& logs = AllLogs();
  std::lock_guard lock(logs.mutex);
  Trace trace;
  for (const auto& log : logs.all) {
    std::lock_guard log_lock(log->mutex);
    const int thread = static_cast<int>(trace.threads.size());
    trace.threads.push_back(log->name);
    for (TraceEvent event : std::exchange(log->events, {})) {
      event.thread = thread;
      trace.events.push_back(event);
    }
  }
  return trace;
}

void NameTraceThread(const std::string& name) {
  ThreadLog& log = LogOfThisThread();
  std::lock_guard lock(log.mutex);
  log.name = name;
}

void TraceSpan::Begin(const char* name) {
  name_ = name;
  begin_ns_ = Now();
}

void TraceSpan::End() {
  const int64_t end = Now();
  if (!recording.load(std::memory_order_relaxed) || begin_ns_ < started_ns) return;
  ThreadLog& log = LogOfThisThread();
  std::lock_guard lock(log.mutex);
  log.events.push_back({name_, 0, begin_ns_, end});
}

}  // namespace renzan
