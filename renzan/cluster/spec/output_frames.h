#pragma once

// A worker's output on its way to who follows it, in frames that say where their text is, so that
// another connection can go on behind it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace renzan::cluster::spec {

struct OutputPlace {
  int64_t attempt = 0;
  int64_t offset = 0;  // in that attempt's output, with what is no longer there
  bool operator==(const OutputPlace&) const = default;
};

constexpr size_t kFrameHeadBytes = 40;
// Goes before `bytes` bytes of text that begins at `place`. A remark is the daemon's own: it is not
// part of the output.
std::string FrameHead(const OutputPlace& place, bool is_remark, size_t bytes);

// Takes frames apart, however they are cut.
class FrameReader {
 public:
  // `place`: behind the text. An empty text says where the stream begins.
  using Take = std::function<void(std::string_view text, const OutputPlace& place)>;

  // Throws Error kUnavailable if these are no frames.
  void Add(std::string_view bytes, const Take& take);

 private:
  void ReadHead();

  std::string head_;
  OutputPlace place_;
  bool is_remark_ = false;
  size_t left_ = 0;  // of the frame's text
};

}  // namespace renzan::cluster::spec
