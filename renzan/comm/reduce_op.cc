#include "renzan/comm/reduce_op.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "renzan/tensor/float_codec.h"

namespace renzan {
namespace {

template <class T>
T Load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// Integer arithmetic is done on unsigned types, which wrap around.
template <class T, ReduceOp op>
T Apply(T a, T b) {
  if constexpr (op == ReduceOp::kMin || op == ReduceOp::kMax) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a)) return a;
      if (std::isnan(b)) return b;
    }
    return (op == ReduceOp::kMin ? b < a : a < b) ? b : a;
  } else if constexpr (std::is_floating_point_v<T>) {
    return op == ReduceOp::kSum ? a + b : a * b;
  } else {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    switch (op) {
      case ReduceOp::kSum:
        return static_cast<T>(x + y);
      case ReduceOp::kProduct:
        return static_cast<T>(x * y);
      case ReduceOp::kBitAnd:
        return static_cast<T>(x & y);
      case ReduceOp::kBitOr:
        return static_cast<T>(x | y);
      default:
        return static_cast<T>(x ^ y);
    }
  }
}

template <class T, ReduceOp op>
void CombineAll(std::byte* sum, const std::byte* term, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const T value = Apply<T, op>(Load<T>(sum + i * sizeof(T)), Load<T>(term + i * sizeof(T)));
    std::memcpy(sum + i * sizeof(T), &value, sizeof(T));
  }
}

template <FloatType type, ReduceOp op>
void CombineSixteenBits(std::byte* sum, const std::byte* term, size_t n) {
  constexpr size_t kBlock = 256;
  std::array<float, kBlock> a, b;
  for (size_t begin = 0; begin < n; begin += kBlock) {
    const size_t size = std::min(kBlock, n - begin);
    std::byte* const here = sum + 2 * begin;
    Decode(type, here, std::span(a).first(size));
    Decode(type, term + 2 * begin, std::span(b).first(size));
    for (size_t i = 0; i < size; ++i) a[i] = Apply<float, op>(a[i], b[i]);
    Encode(type, std::span(a).first(size), here);
  }
}

template <ReduceOp op>
CombineFunction OfIntegers(ElementType type) {
  switch (type) {
    case ElementType::kInt8:
      return CombineAll<int8_t, op>;
    case ElementType::kUInt8:
      return CombineAll<uint8_t, op>;
    case ElementType::kInt16:
      return CombineAll<int16_t, op>;
    case ElementType::kInt32:
      return CombineAll<int32_t, op>;
    case ElementType::kInt64:
      return CombineAll<int64_t, op>;
    default:
      return nullptr;
  }
}

template <ReduceOp op>
CombineFunction OfNumbers(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return CombineAll<float, op>;
    case ElementType::kFloat64:
      return CombineAll<double, op>;
    case ElementType::kFloat16:
      return CombineSixteenBits<FloatType::kFloat16, op>;
    case ElementType::kBFloat16:
      return CombineSixteenBits<FloatType::kBFloat16, op>;
    default:
      return OfIntegers<op>(type);
  }
}

}  // namespace

size_t BytesOf(ElementType type) {
  switch (type) {
    case ElementType::kInt8:
    case ElementType::kUInt8:
      return 1;
    case ElementType::kFloat16:
    case ElementType::kBFloat16:
    case ElementType::kInt16:
      return 2;
    case ElementType::kFloat32:
    case ElementType::kInt32:
      return 4;
    case ElementType::kFloat64:
    case ElementType::kInt64:
      return 8;
  }
  return 0;
}

const char* Name(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return "float32";
    case ElementType::kFloat64:
      return "float64";
    case ElementType::kFloat16:
      return "float16";
    case ElementType::kBFloat16:
      return "bfloat16";
    case ElementType::kInt8:
      return "int8";
    case ElementType::kUInt8:
      return "uint8";
    case ElementType::kInt16:
      return "int16";
    case ElementType::kInt32:
      return "int32";
    case ElementType::kInt64:
      return "int64";
  }
  return "";
}

const char* Name(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kProduct:
      return "product";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kBitAnd:
      return "bitwise and";
    case ReduceOp::kBitOr:
      return "bitwise or";
    case ReduceOp::kBitXor:
      return "bitwise xor";
  }
  return "";
}

CombineFunction Combine(ElementType type, ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return OfNumbers<ReduceOp::kSum>(type);
    case ReduceOp::kProduct:
      return OfNumbers<ReduceOp::kProduct>(type);
    case ReduceOp::kMin:
      return OfNumbers<ReduceOp::kMin>(type);
    case ReduceOp::kMax:
      return OfNumbers<ReduceOp::kMax>(type);
    case ReduceOp::kBitAnd:
      return OfIntegers<ReduceOp::kBitAnd>(type);
    case ReduceOp::kBitOr:
      return OfIntegers<ReduceOp::kBitOr>(type);
    case ReduceOp::kBitXor:
      return OfIntegers<ReduceOp::kBitXor>(type);
  }
  return nullptr;
}

}  // namespace renzan
