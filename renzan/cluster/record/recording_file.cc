#include "renzan/cluster/record/recording_file.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/log.h"

namespace renzan::cluster::record {

RecordingFile::RecordingFile(std::string path, const Recorder& recorder, double interval_seconds)
    : path_(std::move(path)), recorder_(recorder), interval_seconds_(interval_seconds) {
  if (FileExists(path_) && std::rename(path_.c_str(), (path_ + ".1").c_str()) != 0)
    FailErrno(errno, fmt::format("cannot rename {} to {}.1", path_, path_));
  Write();
  thread_ = std::jthread([this](const std::stop_token& stop) { Work(stop); });
}

RecordingFile::~RecordingFile() {
  thread_.request_stop();
  thread_.join();
}

void RecordingFile::Work(const std::stop_token& stop) {
  for (bool last = false; !last;) {
    {
      std::unique_lock lock(mutex_);
      stopped_.wait_for(lock, stop, std::chrono::duration<double>(interval_seconds_),
                        [] { return false; });
    }
    last = stop.stop_requested();
    if (recorder_.counts().taken == written_) continue;
    try {
      Write();
      failed_ = false;
    } catch (const Error& error) {
      if (!std::exchange(failed_, true))
        LogWarning("cycles are not recorded for now: {}", error.what());
    }
  }
}

void RecordingFile::Write() {
  const int64_t taken = recorder_.counts().taken;
  WriteFileAtomically(path_, recorder_.Recording());
  written_ = taken;
}

}  // namespace renzan::cluster::record
