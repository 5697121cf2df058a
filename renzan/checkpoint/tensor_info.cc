#include "renzan/checkpoint/tensor_info.h"

#include <algorithm>

#include "renzan/base/error.h"

namespace renzan {

size_t BytesOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kF16:
    case DType::kBF16:
    case DType::kI16:
      return 2;
    case DType::kI8:
    case DType::kU8:
    case DType::kBool:
      return 1;
  }
  return 0;
}

std::string_view Name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kF16:
      return "F16";
    case DType::kBF16:
      return "BF16";
    case DType::kI32:
      return "I32";
    case DType::kI64:
      return "I64";
    case DType::kU8:
      return "U8";
    case DType::kF64:
      return "F64";
    case DType::kI16:
      return "I16";
    case DType::kI8:
      return "I8";
    case DType::kBool:
      return "BOOL";
  }
  return "";
}

DType ParseDType(std::string_view name) {
  using enum DType;
  for (const DType dtype : {kF32, kF16, kBF16, kI32, kI64, kU8, kF64, kI16, kI8, kBool})
    if (Name(dtype) == name) return dtype;
  Fail(ErrorCode::kData,
       "dtype \"{}\" is none of F64, F32, F16, BF16, I64, I32, I16, I8, U8 and BOOL", name);
}

DType DTypeOf(FloatType type) {
  switch (type) {
    case FloatType::kFloat32:
      return DType::kF32;
    case FloatType::kFloat16:
      return DType::kF16;
    case FloatType::kBFloat16:
      return DType::kBF16;
  }
  return DType::kF32;
}

bool IsFloat(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

FloatType FloatTypeOf(DType dtype) {
  CHECK(IsFloat(dtype));
  if (dtype == DType::kF16) return FloatType::kFloat16;
  return dtype == DType::kBF16 ? FloatType::kBFloat16 : FloatType::kFloat32;
}

int64_t NumElements(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t dimension : shape) elements *= dimension;
  return elements;
}

uint64_t NumBytes(const TensorInfo& tensor) {
  return static_cast<uint64_t>(NumElements(tensor.shape)) * BytesOf(tensor.dtype);
}

void CheckShape(const TensorInfo& tensor) {
  constexpr int64_t kMaxBytes = int64_t{1} << 62;
  // Zero dimensions count as 1, because the other dimensions of an empty tensor must not overflow.
  int64_t bytes = static_cast<int64_t>(BytesOf(tensor.dtype));
  for (const int64_t dimension : tensor.shape)
    if (dimension < 0 || __builtin_mul_overflow(bytes, std::max<int64_t>(dimension, 1), &bytes) ||
        bytes > kMaxBytes)
      Fail(ErrorCode::kData, "tensor '{}' has an impossible shape", tensor.key);
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace renzan
