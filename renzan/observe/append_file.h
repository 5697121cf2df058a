#pragma once

// A log of records without buffering: each record is passed to the operating system in one write,
// so that readers see it immediately and a killed process leaves at most one incomplete record. Not
// thread-safe.

#include <string>
#include <string_view>

namespace renzan {

class AppendFile {
 public:
  // Creates `path` or continues it. Throws Error kCantCreate.
  explicit AppendFile(std::string path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // Throws Error kIo.
  void Append(std::string_view record);

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace renzan
