#pragma once

// Keeps the last cycles that decided anything, so that each of their decisions can be replayed.
//
// A cycle costs its caller one copy of the snapshot; a thread makes JSON of it and compresses that.
// Bounded in memory: of compressed cycles the oldest are forgotten, and while too many copies wait
// for the thread, cycles are not recorded, but counted.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "renzan/cluster/record/recording.h"

namespace renzan::cluster::record {

struct RecorderOptions {
  std::string program, writer;          // see RecordingHeader
  size_t max_bytes = size_t{64} << 20;  // compressed; the newest cycle is kept in any case
  size_t max_waiting = 16;              // copies
  // Take() waits for the thread instead of losing a cycle: where time is virtual.
  bool waits = false;
  // Of cycles that decide nothing, one is kept this long after the last that was kept: it says who
  // waited for what.
  TimeMs idle_interval_ms = kMinute;
};

struct RecorderCounts {
  int64_t taken = 0;  // ever
  int64_t kept = 0;   // now
  size_t bytes = 0;   // of these
  int64_t lost = 0;   // not recorded: too many copies waited
};

class Recorder {
 public:
  explicit Recorder(RecorderOptions options);
  // Waits for what is under way.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // From one thread. Does not wait unless the options say so.
  void Take(const CycleView& cycle);

  // Thread-safe. All that was taken before the call.
  std::string Recording() const;
  RecorderCounts counts() const;

 private:
  void Work();

  const RecorderOptions options_;
  TimeMs last_kept_ = -kHour;  // of the thread that calls Take()

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool ending_ = false;
  std::deque<Cycle> waiting_;  // the first is being worked on
  int64_t done_ = 0;
  std::deque<std::string> frames_;
  RecorderCounts counts_;
  std::thread thread_;
};

}  // namespace renzan::cluster::record
