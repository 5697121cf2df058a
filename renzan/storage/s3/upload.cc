#include "renzan/storage/s3/upload.h"

#include <algorithm>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/log.h"

namespace renzan::s3 {
namespace {

// Stores allow 10,000 parts: the part size doubles after every thousand, so that an object may have
// 5 TB and more.
size_t BytesOfPart(size_t number) { return Upload::kPartBytes << ((number - 1) / 1000); }

}  // namespace

Upload::Upload(Client& client, std::string path)
    : client_(client), path_(std::move(path)), location_(ParseLocation(path_)) {
  if (location_.key.empty())
    Fail(ErrorCode::kCantCreate, "{} is a bucket: name a prefix in it", path_);
}

Upload::~Upload() {
  StopThreads();
  if (closed_ || upload_.empty()) return;
  try {
    client_.AbortUpload(location_, upload_);
  } catch (const Error& error) {
    LogWarning("an upload of {} is left unfinished: {}", path_, error.what());
  }
}

void Upload::Write(const void* data, size_t bytes) {
  CHECK(!closed_);
  const char* from = static_cast<const char*>(data);
  bytes_written_ += bytes;
  while (bytes > 0) {
    const size_t room = BytesOfPart(etags_.size() + 1) - buffer_.size();
    const size_t count = std::min(bytes, room);
    if (buffer_.capacity() == 0 && etags_.size() > 0) buffer_.reserve(kPartBytes);
    buffer_.append(from, count);
    from += count;
    bytes -= count;
    if (count == room) HandOver();
  }
}

// Hands the filled buffer to the threads; waits for one of them if enough parts are in flight.
void Upload::HandOver() {
  if (upload_.empty()) upload_ = client_.BeginUpload(location_);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failure_ || unsent_ < kPartsInFlight; });
  RethrowFailure();
  etags_.emplace_back();
  waiting_.push_back({static_cast<int>(etags_.size()), std::exchange(buffer_, {})});
  ++unsent_;
  if (!spare_.empty()) {
    buffer_ = std::move(spare_.back());
    spare_.pop_back();
    buffer_.clear();
  }
  if (threads_.size() < static_cast<size_t>(unsent_))
    threads_.emplace_back([this](const std::stop_token& stop) { SendParts(stop); });
  changed_.notify_all();
}

void Upload::SendParts(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return !waiting_.empty(); })) {
    Part part = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    std::string etag;
    std::exception_ptr failure;
    try {
      etag = client_.PutPart(location_, upload_, part.number, part.body, stop);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    --unsent_;
    etags_[static_cast<size_t>(part.number) - 1] = std::move(etag);
    spare_.push_back(std::move(part.body));
    if (failure && !failure_) failure_ = failure;
    changed_.notify_all();
    if (failure_) return;
  }
}

void Upload::RethrowFailure() {
  if (failure_) std::rethrow_exception(failure_);
}

void Upload::StopThreads() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

void Upload::Close() {
  CHECK(!closed_);
  if (upload_.empty()) {
    client_.Put(location_, buffer_);
  } else {
    if (!buffer_.empty()) HandOver();
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return failure_ || unsent_ == 0; });
      RethrowFailure();
    }
    StopThreads();
    client_.CompleteUpload(location_, upload_, etags_, bytes_written_);
  }
  closed_ = true;
  buffer_ = {};
  spare_.clear();
}

}  // namespace renzan::s3
