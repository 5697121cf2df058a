#pragma once

// The instruction set of a run. Bits are promised for one ISA class: a fused multiply-add or a
// wider vector rounds differently, so the class is chosen once, recorded, and can be pinned.

#include <string>

namespace renzan {

// "auto" takes the widest class of this machine; "sse4", "avx2" and "avx512" pin one. Returns
// the class in force. Must be called before the first kernel; throws kConfig for a name that is
// unknown or that this machine lacks.
std::string SelectIsa(const std::string& name);

// Of oneDNN: "2.6.3".
std::string MatmulLibraryVersion();

// Of the C library, whose `exp` and `log` are part of the arithmetic: "glibc 2.36".
std::string MathLibraryVersion();

}  // namespace renzan
