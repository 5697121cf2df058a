#pragma once

// The operations of a reduction: the type of its elements, and how two elements become one. Pure
// functions, thread-safe.

#include <cstddef>

namespace renzan {

enum class ElementType {
  kFloat32,
  kFloat64,
  kFloat16,
  kBFloat16,
  kInt8,
  kUInt8,
  kInt16,
  kInt32,
  kInt64,
};

size_t BytesOf(ElementType type);
// "float32", as NumPy spells it.
const char* Name(ElementType type);

// Bitwise operations are for integers.
enum class ReduceOp { kSum, kProduct, kMin, kMax, kBitAnd, kBitOr, kBitXor };

// "sum"
const char* Name(ReduceOp op);

// sum[i] = op(sum[i], term[i]) for `n` elements. 16-bit floats are combined in float32 and rounded
// as float_codec.h says; integers wrap around; NaN wins over numbers in kMin and kMax. Buffers need
// no alignment.
using CombineFunction = void (*)(std::byte* sum, const std::byte* term, size_t n);

// Null: there is no such operation on that type.
CombineFunction Combine(ElementType type, ReduceOp op);

}  // namespace renzan
