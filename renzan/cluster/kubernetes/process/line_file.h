#pragma once

// Writes lines that other programs read meanwhile: to a file that is appended to, or to stdout or
// stderr. For one thread.

#include <string>
#include <string_view>

#include "renzan/base/process/descriptor.h"

namespace renzan::cluster::kubernetes {

class LineFile {
 public:
  // A file's path, "-" for stdout, "" for stderr. Throws Error kCantCreate.
  explicit LineFile(const std::string& path);

  // Appends whole lines in one write. A failure is logged once, until writing works again.
  void Append(std::string_view lines);

 private:
  std::string name_;
  Descriptor fd_;
  bool failed_ = false;
};

}  // namespace renzan::cluster::kubernetes
