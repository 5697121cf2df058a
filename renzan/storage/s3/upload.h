#pragma once

// Writes an object of unknown size: its parts are uploaded as they fill up, several at a time, by
// threads that get the priority of the thread that filled the first one. An object smaller than a
// part is written in one request. An upload that is not closed is aborted. For one thread.

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "renzan/storage/s3/client.h"
#include "renzan/storage/storage.h"

namespace renzan::s3 {

class Upload : public OutputFile {
 public:
  // Memory: one part for each in flight, and the one being filled.
  static constexpr int kPartsInFlight = 4;
  static constexpr size_t kPartBytes = 8 << 20;

  static_assert((kPartsInFlight + 1) * kPartBytes <= kOutputFileBytes);

  Upload(Client& client, std::string path);
  ~Upload() override;

  void Write(const void* data, size_t bytes) override;
  void Close() override;
  const std::string& path() const override { return path_; }
  uint64_t bytes_written() const override { return bytes_written_; }

 private:
  struct Part {
    int number = 0;
    std::string body;
  };
  void HandOver();
  void SendParts(const std::stop_token& stop);
  void RethrowFailure();
  void StopThreads();

  Client& client_;
  const std::string path_;
  const Location location_;
  std::string buffer_;
  uint64_t bytes_written_ = 0;
  std::string upload_;  // its id; empty: not begun
  bool closed_ = false;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Part> waiting_;
  std::vector<std::string> etags_;  // by part; empty while it is being uploaded
  std::vector<std::string> spare_;  // buffers for reuse
  int unsent_ = 0;                  // parts waiting and in flight
  std::exception_ptr failure_;
  std::vector<std::jthread> threads_;
};

}  // namespace renzan::s3
