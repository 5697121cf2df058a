#pragma once

// A text file that appears atomically, compressed according to its name: .gz, .zst or plain. The
// same text gives the same bytes. Not thread-safe.

#include <memory>
#include <string>
#include <string_view>

namespace renzan {

class TextOutput {
 public:
  // Throws kCantCreate if the file exists or cannot be created.
  explicit TextOutput(const std::string& path);
  ~TextOutput();
  TextOutput(const TextOutput&) = delete;
  TextOutput& operator=(const TextOutput&) = delete;

  void Write(std::string_view text);
  // Completes the file and puts it in place.
  void Close();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace renzan
