#pragma once

// The lines of a recorded workload, counted for messages. Not thread-safe.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "renzan/base/error.h"

namespace renzan::cluster::simulate {

// Reads the next line, without its newline; false after the last one.
using NextLine = std::function<bool(std::string_view* line)>;

class TraceLines {
 public:
  // Both must outlive this.
  TraceLines(const NextLine& next, const std::string& name) : next_(next), name_(name) {}

  bool Next(std::string_view* line) {
    if (!next_(line)) return false;
    ++number_;
    return true;
  }

  // Throws Error kData "name:line: ..." for the line read last.
  template <typename... Args>
  [[noreturn]] void FailHere(fmt::format_string<Args...> format, Args&&... args) const {
    Fail(ErrorCode::kData, "{}:{}: {}", name_, std::max<int64_t>(number_, 1),
         fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  const NextLine& next_;
  const std::string& name_;
  int64_t number_ = 0;
};

}  // namespace renzan::cluster::simulate
