#include "renzan/cluster/pod/last_line.h"

#include <algorithm>

namespace renzan::cluster::pod {
namespace {

constexpr size_t kMaxLineBytes = 4096;

}  // namespace

bool LastLine::IsBlank(const std::string& line) {
  return line.find_first_not_of(" \t") == std::string::npos;
}

void LastLine::Add(std::string_view piece) {
  while (!piece.empty()) {
    const size_t end = piece.find_first_of("\r\n");
    const std::string_view part = piece.substr(0, end);
    current_ += part.substr(0, kMaxLineBytes - current_.size());
    piece.remove_prefix(part.size());
    if (end == std::string_view::npos) return;
    piece.remove_prefix(1);
    if (!IsBlank(current_)) last_.swap(current_);
    current_.clear();
  }
}

const std::string& LastLine::text() const { return IsBlank(current_) ? last_ : current_; }

}  // namespace renzan::cluster::pod
