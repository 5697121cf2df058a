#pragma once

// The instruction set of a run, chosen once, recorded, and possibly pinned.
//
// The width of vectors never affects results (gemm.h); whether multiply and add are fused does. So
// AVX2 and AVX-512, with or without its products of bfloat16, give the same bits, and SSE4, which
// cannot fuse, gives others.

#include <string>

namespace renzan {

// "auto" selects the fastest class of this machine; "sse4", "avx2", "avx512" and "avx512_bf16" pin
// one. Returns the selected class. Must be called before the first kernel; throws kConfig if the
// name is unknown or the machine does not support the class.
std::string SelectIsa(const std::string& name);

// Whether products of bfloat16 use the processor's instruction for pairs.
bool HasBFloat16Pairs();

// Whether runs on two instruction sets have the same bits.
bool HasSameBits(const std::string& isa, const std::string& other);

// The version of the C library, whose `exp` and `log` affect results: "glibc 2.36".
std::string MathLibraryVersion();

}  // namespace renzan
