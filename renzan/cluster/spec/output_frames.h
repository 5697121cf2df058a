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

enum class FrameKind : char {
  kOutput = '=',
  kRemark = '!',    // the daemon's own text: it is not part of the output
  kComplete = '.',  // the last frame, without text: there will be no more output
};

constexpr size_t kFrameHeadBytes = 40;
// Goes before `bytes` bytes of text that begins at `place`.
std::string FrameHead(const OutputPlace& place, FrameKind kind, size_t bytes);

// Takes frames apart, however they are cut.
class FrameReader {
 public:
  // `place`: behind the text. An empty text says where the stream begins.
  using Take = std::function<void(std::string_view text, const OutputPlace& place)>;

  // Throws Error kConfig if these are no frames.
  void Add(std::string_view bytes, const Take& take);
  // After the stream. Throws Error kConfig if there were no frames, and kUnavailable if the last
  // one is cut short.
  void End() const;
  // Without that, the stream ended before the output.
  bool is_complete() const { return begun_ && kind_ == FrameKind::kComplete; }

 private:
  void ReadHead();

  std::string head_;
  OutputPlace place_;
  FrameKind kind_ = FrameKind::kOutput;
  bool begun_ = false;
  size_t left_ = 0;  // of the frame's text
};

}  // namespace renzan::cluster::spec
