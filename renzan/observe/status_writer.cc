#include "renzan/observe/status_writer.h"

#include <exception>
#include <utility>

namespace renzan {

StatusWriter::StatusWriter(std::string path)
    : path_(std::move(path)),
      out_of_memory_(ErrorCode::kOsError, fmt::format("cannot write {}: out of memory", path_)) {
  task_.Start([this] { Serve(); });
}

StatusWriter::~StatusWriter() {
  const std::lock_guard lock(mutex_);
  ending_ = true;
  changed_.notify_all();
}

void StatusWriter::Write(const RunStatus& status) {
  const std::lock_guard lock(mutex_);
  newest_ = status;
  changed_.notify_all();
}

void StatusWriter::Flush() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !newest_ && !writing_; });
}

std::optional<Error> StatusWriter::TakeError() {
  const std::lock_guard lock(mutex_);
  return std::exchange(error_, std::nullopt);
}

void StatusWriter::Serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return newest_ || ending_; });
    if (!newest_) return;
    const RunStatus status = std::move(*newest_);
    newest_.reset();
    writing_ = true;
    lock.unlock();
    std::optional<Error> error;
    try {
      WriteStatusFile(path_, status);
    } catch (const Error& failure) {
      error = failure;
    } catch (const std::exception&) {
      error = out_of_memory_;
    }
    lock.lock();
    if (error) error_ = std::move(error);
    writing_ = false;
    changed_.notify_all();
  }
}

}  // namespace renzan
