#pragma once

// The key, shape and element type of a tensor.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/tensor/float_codec.h"

namespace renzan {

// The last four are only in checkpoints of PyTorch programs.
enum class DType { kF32, kF16, kBF16, kI32, kI64, kU8, kF64, kI16, kI8, kBool };

size_t BytesOf(DType dtype);

// "F32", as safetensors files spell it.
std::string_view Name(DType dtype);

// The reverse. Throws Error kData for anything else.
DType ParseDType(std::string_view name);

// Whether values are read as float32 without loss: F32, F16 or BF16.
bool IsFloat(DType dtype);
DType DTypeOf(FloatType type);
// The reverse, if IsFloat(dtype).
FloatType FloatTypeOf(DType dtype);

struct TensorInfo {
  std::string key;
  std::vector<int64_t> shape;  // empty for a single value
  DType dtype = DType::kF32;

  bool operator==(const TensorInfo&) const = default;
};

// The product of the dimensions.
int64_t NumElements(const std::vector<int64_t>& shape);

uint64_t NumBytes(const TensorInfo& tensor);

// Throws Error kData for an invalid shape read from a file: a negative dimension or more than 2^62
// bytes, so that sums of two sizes cannot overflow.
void CheckShape(const TensorInfo& tensor);

// "[4, 2]"
std::string ShapeText(const std::vector<int64_t>& shape);

}  // namespace renzan
