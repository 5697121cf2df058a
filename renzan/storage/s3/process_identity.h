#pragma once

// Names for processes and for what they write. Thread-safe.

#include <string>

namespace renzan::s3 {

// 16 hexadecimal digits that nobody else has.
std::string RandomName();

// This process, in a form that IsGone() of another process on this machine understands.
std::string ThisProcess();

// Whether the process is certainly gone: it was one of this machine since its last start, seen from
// the same container, and is no more. False for every other process and text.
bool IsGone(const std::string& process);

}  // namespace renzan::s3
