#include "renzan/cluster/local/supervisor/log_pump.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "renzan/base/error.h"

namespace renzan::cluster::local {
namespace {

constexpr size_t kPieceBytes = 1 << 16;

}  // namespace

LogPump::LogPump() : buffer_(kPieceBytes) {
  if (pipe2(wake_, O_CLOEXEC) != 0) Fail(ErrorCode::kOsError, "pipe: {}", std::strerror(errno));
}

LogPump::~LogPump() {
  Finish();
  close(wake_[0]);
}

int LogPump::Add(LogWriter log) {
  CHECK(!thread_.joinable());
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) Fail(ErrorCode::kOsError, "pipe: {}", std::strerror(errno));
  fcntl(fds[0], F_SETFL, O_NONBLOCK);
  streams_.push_back({fds[0], std::move(log)});
  return fds[1];
}

void LogPump::Start() {
  thread_ = std::thread([this] { Run(); });
}

void LogPump::Finish() {
  if (wake_[1] >= 0) close(std::exchange(wake_[1], -1));
  if (thread_.joinable()) thread_.join();
}

int64_t LogPump::dropped_bytes() const {
  int64_t bytes = 0;
  for (const Stream& stream : streams_) bytes += stream.log.dropped_bytes();
  return bytes;
}

bool LogPump::Copy(Stream& stream) {
  if (stream.fd < 0) return false;
  const ssize_t length = read(stream.fd, buffer_.data(), buffer_.size());
  if (length > 0) {
    stream.log.Write({buffer_.data(), static_cast<size_t>(length)});
    return true;
  }
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  close(std::exchange(stream.fd, -1));
  return false;
}

void LogPump::Run() {
  std::vector<pollfd> waiting;
  for (bool finishing = false; !finishing;) {
    waiting.assign(1, {wake_[0], POLLIN, 0});
    for (const Stream& stream : streams_) waiting.push_back({stream.fd, POLLIN, 0});
    poll(waiting.data(), waiting.size(), -1);
    finishing = waiting[0].revents != 0;
    for (Stream& stream : streams_) Copy(stream);
  }
  // All writers have ended, so this ends too: at the end of the pipe or, if a process that could
  // not be killed still has it open, when it is empty.
  for (Stream& stream : streams_) {
    while (Copy(stream)) {
    }
    if (stream.fd >= 0) close(std::exchange(stream.fd, -1));
  }
}

}  // namespace renzan::cluster::local
