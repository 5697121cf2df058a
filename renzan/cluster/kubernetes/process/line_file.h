#pragma once

// Lines that other programs read while they are written: in a file that is appended to, or on
// stdout or stderr. For one thread.

#include <string>
#include <string_view>

#include "renzan/base/process/descriptor.h"

namespace renzan::cluster::kubernetes {

class LineFile {
 public:
  // A file's path, "-" for stdout, "" for stderr. Throws Error kCantCreate.
  explicit LineFile(const std::string& path);

  // Whole lines, at once. A failure is logged, once until it works again.
  void Append(std::string_view lines);

 private:
  std::string name_;
  Descriptor fd_;
  bool failed_ = false;
};

}  // namespace renzan::cluster::kubernetes
