#pragma once

// Keeps the last cycles that decided anything, so that each of their decisions can be replayed.
//
// A cycle costs its caller one copy of the snapshot; a thread converts it to JSON and compresses
// it. Memory is bounded: the oldest compressed cycles are dropped, and while too many copies wait
// for the thread, cycles are only counted.

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
  // Take() waits for the thread instead of losing a cycle. For virtual time.
  bool waits = false;
  // Of cycles that decide nothing, one is kept if this much time has passed since the last one
  // kept: it shows who waited for what.
  TimeMs idle_interval_ms = kMinute;
};

struct RecorderCounts {
  int64_t taken = 0;  // in total
  int64_t kept = 0;   // at present
  size_t bytes = 0;   // of those kept
  int64_t lost = 0;   // not recorded: too many copies waited
};

class Recorder {
 public:
  explicit Recorder(RecorderOptions options);
  // Waits until taken cycles have been processed.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Call it from one thread. Does not wait unless the options say so.
  void Take(const CycleView& cycle);

  // All cycles taken before the call. Thread-safe.
  std::string Recording() const;
  RecorderCounts counts() const;

 private:
  void Work();

  const RecorderOptions options_;
  TimeMs last_kept_ = -kHour;  // used by the thread that calls Take()

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool ending_ = false;
  std::deque<Cycle> waiting_;  // the first is being processed
  int64_t done_ = 0;
  std::deque<std::string> frames_;
  RecorderCounts counts_;
  std::thread thread_;
};

}  // namespace renzan::cluster::record
