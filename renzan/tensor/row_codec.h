#pragma once

// Rows of float32 values on the wire between workers: pooled embeddings and their gradients.
//
// fp32, fp16 and bf16 encode value by value (float_codec.h). int8 and int4 share a power of two per
// row, as the formats of OCP Microscaling do: a value is q·2^e with |q| at most 127 or 7, and e is
// the smallest exponent, at least -100, that keeps the row's largest magnitude in that range after
// rounding to the nearest even q. Because products with 2^e are exact, a row that was rounded once
// does not change when it is rounded again, which an arbitrary scale could not guarantee: so it
// does not matter how many workers a row passes through. Against the best scale this costs at most
// one bit, half a bit on average. Magnitudes beyond 127·2^121 (7·2^125) become that value. A row
// with a NaN or an infinity becomes NaN altogether; there is no -0.
//
// An encoded row of int8 is one byte for e + 127 (255 for NaN), then one byte for each q. In int4,
// byte j holds column j in its low half and column j + ⌈columns / 2⌉, if there is one, in its high
// half.
//
// The same bits on every instruction set. Pure functions, thread-safe. `std::byte` buffers need no
// alignment.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace renzan {

enum class RowCodec { kFloat32, kFloat16, kBFloat16, kInt8, kInt4 };

// "fp32", "fp16", "bf16", "int8", "int4".
const std::vector<std::string>& RowCodecNames();
// Anything else is an Error (kConfig).
RowCodec ParseRowCodec(std::string_view name);

// Bytes that a row of `columns` values takes.
size_t EncodedRowBytes(RowCodec codec, size_t columns);

// `rows` [n, columns] to and from n·EncodedRowBytes() bytes.
void EncodeRows(RowCodec codec, size_t columns, std::span<const float> rows, std::byte* encoded);
void DecodeRows(RowCodec codec, size_t columns, const std::byte* encoded, std::span<float> rows);

// row = Decode(Encode(row)).
void RoundTripRow(RowCodec codec, std::span<float> row);

// sum = RoundTripRow(sum + other): an inner node of a tree of sums. The sizes must be equal.
void AddRoundTripRow(RowCodec codec, std::span<float> sum, std::span<const float> other);

}  // namespace renzan
