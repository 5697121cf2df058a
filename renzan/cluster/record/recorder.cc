#include "renzan/cluster/record/recorder.h"

#include <system_error>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/cluster/record/cycle_json.h"

namespace renzan::cluster::record {

Recorder::Recorder(RecorderOptions options) : options_(std::move(options)) {
  try {
    thread_ = std::thread([this] { Work(); });
  } catch (const std::system_error& error) {
    Fail(ErrorCode::kOsError, "cannot start a thread that records cycles: {}", error.what());
  }
}

Recorder::~Recorder() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Recorder::Take(const CycleView& cycle) {
  const TimeMs now = cycle.snapshot.now;
  if (!Decides(cycle.snapshot, cycle.decisions) && now < last_kept_ + options_.idle_interval_ms)
    return;
  {
    std::unique_lock lock(mutex_);
    const auto has_room = [this] { return waiting_.size() < options_.max_waiting; };
    if (options_.waits) changed_.wait(lock, has_room);
    if (!has_room()) {
      ++counts_.lost;
      return;
    }
  }
  last_kept_ = now;
  Cycle copy = CopyOf(cycle);
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(copy));
    ++counts_.taken;
  }
  changed_.notify_all();
}

void Recorder::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const Cycle& cycle = waiting_.front();  // stays where it is while others are added
    lock.unlock();
    std::string frame = Compressed(CycleToJson(cycle));
    lock.lock();
    waiting_.pop_front();
    counts_.bytes += frame.size();
    frames_.push_back(std::move(frame));
    for (; counts_.bytes > options_.max_bytes && frames_.size() > 1; frames_.pop_front())
      counts_.bytes -= frames_.front().size();
    counts_.kept = static_cast<int64_t>(frames_.size());
    ++done_;
    changed_.notify_all();
  }
}

std::string Recorder::Recording() const {
  std::vector<std::string> frames;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this, until = counts_.taken] { return done_ >= until; });
    frames.assign(frames_.begin(), frames_.end());
  }
  return RecordingOf({options_.program, options_.writer, frames.size()}, frames);
}

RecorderCounts Recorder::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace renzan::cluster::record
