#pragma once

// The instruction set of a run. Results are bit-identical only within one ISA class, because fused
// multiply-adds and wider vectors round differently; so the class is chosen once, recorded, and can
// be pinned.

#include <string>

namespace renzan {

// "auto" selects the widest class of this machine; "sse4", "avx2" and "avx512" pin one. Returns the
// selected class. Must be called before the first kernel; throws kConfig if the name is unknown or
// the machine does not support the class.
std::string SelectIsa(const std::string& name);

// The version of the C library, whose `exp` and `log` affect results: "glibc 2.36".
std::string MathLibraryVersion();

}  // namespace renzan
