#pragma once

// Pipes between processes.

#include <string>

#include "renzan/base/process/descriptor.h"

namespace renzan {

struct Pipe {
  Descriptor read_end, write_end;
};

// Programs that the process starts do not inherit its ends. Throws Error kOsError.
Pipe MakePipe();

// Waits until all write ends are closed. A read error counts as the end.
std::string ReadToEnd(const Descriptor& read_end);

}  // namespace renzan
