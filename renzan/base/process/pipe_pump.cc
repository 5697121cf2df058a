#include "renzan/base/process/pipe_pump.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "renzan/base/error.h"

namespace renzan {
namespace {

constexpr size_t kPieceBytes = 1 << 16;

}  // namespace

PipePump::PipePump() : buffer_(kPieceBytes), wake_(MakePipe()) {}

PipePump::~PipePump() { Finish(); }

Descriptor PipePump::Add(Sink sink) {
  CHECK(!thread_.joinable());
  Pipe pipe = MakePipe();
  fcntl(pipe.read_end.get(), F_SETFL, O_NONBLOCK);
  streams_.push_back({std::move(pipe.read_end), std::move(sink)});
  return std::move(pipe.write_end);
}

void PipePump::Start() {
  thread_ = std::thread([this] { Run(); });
}

void PipePump::Finish() {
  wake_.write_end.Close();
  if (thread_.joinable()) thread_.join();
}

bool PipePump::Copy(Stream& stream) {
  if (!stream.pipe) return false;
  const ssize_t length = read(stream.pipe.get(), buffer_.data(), buffer_.size());
  if (length > 0) {
    stream.sink({buffer_.data(), static_cast<size_t>(length)});
    return true;
  }
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  stream.pipe.Close();
  return false;
}

void PipePump::Run() {
  std::vector<pollfd> waiting;
  for (bool finishing = false; !finishing;) {
    waiting.assign(1, {wake_.read_end.get(), POLLIN, 0});
    for (const Stream& stream : streams_) waiting.push_back({stream.pipe.get(), POLLIN, 0});
    poll(waiting.data(), waiting.size(), -1);
    finishing = waiting[0].revents != 0;
    for (Stream& stream : streams_) Copy(stream);
  }
  // All writers have ended, so this ends too: at the end of the pipe or, if a process that could
  // not be killed still has it open, when it is empty.
  for (Stream& stream : streams_) {
    while (Copy(stream)) {
    }
    stream.pipe.Close();
  }
}

}  // namespace renzan
