#pragma once

#include <string>

namespace renzan {

// An exclusive kernel lock (flock) on a file, which is created if necessary. It ends with the
// process.
class Flock {
 public:
  explicit Flock(std::string path) : path_(std::move(path)) {}
  ~Flock();
  Flock(const Flock&) = delete;
  Flock& operator=(const Flock&) = delete;

  // False if somebody else holds it and `wait` is false. Throws Error kCantCreate or kIo.
  bool Take(bool wait);
  bool is_taken() const { return fd_ >= 0; }

 private:
  const std::string path_;
  int fd_ = -1;
};

}  // namespace renzan
