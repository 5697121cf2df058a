#pragma once

// Names for processes and for what they write. Thread-safe.

#include <string>

namespace renzan::s3 {

// 16 random hexadecimal digits.
std::string RandomName();

// This process, in a form that IsGone() of another process on this machine understands.
std::string ThisProcess();

// Whether the process is certainly gone: it ran on this machine since its last boot, in the same
// PID namespace, and has ended. False for every other process or text.
bool IsGone(const std::string& process);

}  // namespace renzan::s3
