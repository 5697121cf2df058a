#pragma once

// A file that follows a recorder: it is replaced as a whole, so that readers see a complete
// recording, every few seconds while cycles are recorded, and at the end. In a thread of its own.

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "renzan/cluster/record/recorder.h"

namespace renzan::cluster::record {

class RecordingFile {
 public:
  // A file that an earlier process left at `path` is kept as `path`.1. `recorder` must outlive it.
  // Throws Error kCantCreate or kIo. Later failures are logged, and writing is retried.
  RecordingFile(std::string path, const Recorder& recorder, double interval_seconds = 10);
  ~RecordingFile();
  RecordingFile(const RecordingFile&) = delete;
  RecordingFile& operator=(const RecordingFile&) = delete;

 private:
  void Work(const std::stop_token& stop);
  void Write();

  const std::string path_;
  const Recorder& recorder_;
  const double interval_seconds_;
  int64_t written_ = -1;  // RecorderCounts::taken at the last write
  bool failed_ = false;
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::jthread thread_;
};

}  // namespace renzan::cluster::record
