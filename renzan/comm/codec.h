#pragma once

// Wire codecs: the encoding of float32 values sent between workers. Rounding is to the nearest even
// value; a finite value beyond the type's range becomes the largest finite one (sending must not
// turn a gradient into infinity), infinities stay infinities and every NaN becomes the quiet NaN of
// its sign. Subnormal values of the target type are kept.
//
// Vectorised for the best available instruction set, with the same bits on all. Pure functions,
// thread-safe. `std::byte` buffers need no alignment. Bytes on the wire are in native order,
// little-endian.

#include <cstddef>
#include <span>
#include <string_view>

namespace renzan {

enum class WireType { kFloat32, kFloat16, kBFloat16 };

// "fp32", "fp16" or "bf16"; anything else is an Error (kConfig).
WireType ParseWireType(std::string_view name);

// The name that ParseWireType accepts.
const char* Name(WireType type);

// Bytes that `n` values take.
size_t WireBytes(WireType type, size_t n);

// Writes WireBytes(type, values.size()) bytes to `wire`.
void Encode(WireType type, std::span<const float> values, std::byte* wire);

// Reads WireBytes(type, values.size()) bytes from `wire`.
void Decode(WireType type, const std::byte* wire, std::span<float> values);

// values[i] = Decode(Encode(values[i])): the values after encoding and decoding.
void RoundTrip(WireType type, std::span<float> values);

// sum[i] = RoundTrip(sum[i] + other[i]): one inner node of a reduction tree. The sizes must be
// equal.
void AddRoundTrip(WireType type, std::span<float> sum, std::span<const float> other);

}  // namespace renzan
