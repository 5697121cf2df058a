#pragma once

// The instruction set of a run, chosen once, recorded, and possibly pinned.
//
// The width of vectors never affects results (gemm.h); whether multiply and add are fused does. So
// AVX2 and AVX-512, with or without its bfloat16 products, give the same bits, and SSE4, which
// cannot fuse, gives others. AMX adds the terms of bfloat16 products in another order, so it is a
// class of its own, which other processors emulate.

#include <cstdint>
#include <string>

#include "renzan/tensor/precision.h"

namespace renzan {

// "auto" selects the fastest class of this machine for products of the given precision; "sse4",
// "avx2", "avx512", "avx512_bf16", "amx" and "neon" pin one. "amx" needs AVX2 only: without AMX it
// is emulated. Returns the selected class. Must be called before the first kernel; throws kConfig
// if the name is unknown or the machine does not support the class.
std::string SelectIsa(const std::string& name, Precision precision = Precision::kFloat32);

// Throws kConfig for a processor that has none of the classes, which could not execute the
// kernels: `highway_targets` are those that it supports. SelectIsa() asks first.
void CheckProcessor(int64_t highway_targets);

// How the selected class computes products of bfloat16.
enum class BFloat16Products {
  kWidened,  // as those of float32
  kPairs,    // AVX-512's instruction for pairs
  kTiles,    // AMX's order
};
BFloat16Products BFloat16ProductsOfIsa();

// Whether there are tile registers, so that nothing has to be emulated.
bool HasTileRegisters();

// For tests: emulates tile registers even where they exist.
void EmulateTileRegisters(bool always);

// Whether runs on two instruction sets have the same bits.
bool HasSameBits(const std::string& isa, const std::string& other, Precision precision);

// Whether a recorded class is a GPU's ("sm_90x132", cuda/device_model.h) rather than an instruction
// set.
bool IsGpuClass(const std::string& isa);

// The version of the C library, whose `exp` and `log` affect results: "glibc 2.36".
std::string MathLibraryVersion();

}  // namespace renzan
