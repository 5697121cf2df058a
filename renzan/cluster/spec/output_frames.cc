#include "renzan/cluster/spec/output_frames.h"

#include <algorithm>
#include <charconv>

#include "renzan/base/error.h"

namespace renzan::cluster::spec {
namespace {

// Not kUnavailable: the daemon is there, and trying again does not help.
[[noreturn]] void FailNoFrames() {
  Fail(ErrorCode::kConfig,
       "the daemon is of an earlier version, whose jobs' output this one cannot follow: start it "
       "again (`renzan cluster down`, `renzan cluster up`)");
}

bool IsKind(char mark) {
  return mark == static_cast<char>(FrameKind::kOutput) ||
         mark == static_cast<char>(FrameKind::kRemark) ||
         mark == static_cast<char>(FrameKind::kComplete);
}

// The number in a column, which is padded on the left.
int64_t Number(std::string_view column) {
  column.remove_prefix(std::min(column.find_first_not_of(' '), column.size()));
  int64_t number = 0;
  const char* const end = column.data() + column.size();
  const auto [last, error] = std::from_chars(column.data(), end, number);
  if (error != std::errc() || last != end || number < 0) FailNoFrames();
  return number;
}

}  // namespace

std::string FrameHead(const OutputPlace& place, FrameKind kind, size_t bytes) {
  const std::string head = fmt::format("{}{:>8} {:>19} {:>9}\n", static_cast<char>(kind),
                                       place.attempt, place.offset, bytes);
  CHECK(head.size() == kFrameHeadBytes);
  return head;
}

void FrameReader::ReadHead() {
  const std::string_view head = head_;
  if (head.back() != '\n') FailNoFrames();
  kind_ = static_cast<FrameKind>(head[0]);
  place_ = {.attempt = Number(head.substr(1, 8)), .offset = Number(head.substr(10, 19))};
  left_ = static_cast<size_t>(Number(head.substr(30, 9)));
  begun_ = true;
  head_.clear();
}

void FrameReader::Add(std::string_view bytes, const Take& take) {
  while (!bytes.empty()) {
    if (left_ == 0) {
      const size_t part = std::min(bytes.size(), kFrameHeadBytes - head_.size());
      head_ += bytes.substr(0, part);
      bytes.remove_prefix(part);
      // At once: text of an earlier daemon may be shorter than a head.
      if (is_complete() || !IsKind(head_[0])) FailNoFrames();
      if (head_.size() < kFrameHeadBytes) return;
      ReadHead();
      if (left_ == 0) take({}, place_);
      continue;
    }
    const std::string_view text = bytes.substr(0, left_);
    bytes.remove_prefix(text.size());
    left_ -= text.size();
    if (kind_ == FrameKind::kOutput) place_.offset += static_cast<int64_t>(text.size());
    take(text, place_);
  }
}

void FrameReader::End() const {
  if (!begun_) FailNoFrames();
  if (!head_.empty() || left_ > 0)
    Fail(ErrorCode::kUnavailable, "the daemon's answer is cut short");
}

}  // namespace renzan::cluster::spec
