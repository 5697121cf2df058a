#pragma once

// float32 values in 16 bits: on the wire between workers, in rows of tables, in files. Rounding is
// to the nearest even value; a finite value beyond the type's range becomes the largest finite one
// (sending must not turn a gradient into infinity), infinities stay infinities and every NaN
// becomes the quiet NaN of its sign. Subnormal values of the target type are kept.
//
// Vectorised for the best available instruction set, with the same bits on all. Pure functions,
// thread-safe. `std::byte` buffers need no alignment and hold values in native order,
// little-endian.

#include <cstddef>
#include <span>
#include <string_view>

namespace renzan {

enum class FloatType { kFloat32, kFloat16, kBFloat16 };

// "fp32", "fp16" or "bf16"; anything else is an Error (kConfig).
FloatType ParseFloatType(std::string_view name);

// The name that ParseFloatType accepts.
const char* Name(FloatType type);

// Bytes that `n` values take.
size_t EncodedBytes(FloatType type, size_t n);

// Writes EncodedBytes(type, values.size()) bytes to `encoded`.
void Encode(FloatType type, std::span<const float> values, std::byte* encoded);

// Reads EncodedBytes(type, values.size()) bytes from `encoded`.
void Decode(FloatType type, const std::byte* encoded, std::span<float> values);

// values[i] = Decode(Encode(values[i])): the values after encoding and decoding.
void RoundTrip(FloatType type, std::span<float> values);

// sum[i] = RoundTrip(sum[i] + other[i]): one inner node of a reduction tree. The sizes must be
// equal.
void AddRoundTrip(FloatType type, std::span<float> sum, std::span<const float> other);

}  // namespace renzan
