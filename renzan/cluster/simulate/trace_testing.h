#pragma once

// For tests: the lines of a text.

#include <string_view>

#include "renzan/cluster/simulate/trace_lines.h"

namespace renzan::cluster::simulate {

// `text` must outlive it.
inline NextLine LinesOf(std::string_view text) {
  return [left = text](std::string_view* line) mutable {
    if (left.empty()) return false;
    const size_t end = left.find('\n');
    *line = left.substr(0, end);
    left.remove_prefix(end == left.npos ? left.size() : end + 1);
    return true;
  };
}

}  // namespace renzan::cluster::simulate
