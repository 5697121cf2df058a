#include "renzan/cluster/kubernetes/api/event_lines.h"

namespace renzan::cluster::kubernetes {

bool EventLines::Add(std::string_view piece,
                     const std::function<void(std::string_view line)>& take) {
  while (!piece.empty()) {
    const size_t end = piece.find('\n');
    const std::string_view part = piece.substr(0, end);
    if (begun_.size() + part.size() > max_bytes_) return false;
    if (end == std::string_view::npos) {
      begun_ += part;
      return true;
    }
    piece.remove_prefix(end + 1);
    if (begun_.empty()) {
      if (!part.empty()) take(part);
      continue;
    }
    begun_ += part;
    const std::string line = std::move(begun_);
    begun_.clear();
    take(line);
  }
  return true;
}

}  // namespace renzan::cluster::kubernetes
