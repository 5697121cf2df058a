#pragma once

// Matrix products of a virtual worker's shapes through cuBLASLt, for several virtual workers at
// once. The algorithm is chosen for the number of virtual workers of the whole run, and never
// splits a sum over blocks whose order may vary: a virtual worker's result does not depend on which
// others are computed beside it.

#include <cstdint>
#include <memory>
#include <vector>

#include "renzan/cuda/memory.cuh"
#include "renzan/tensor/precision.h"

namespace renzan::cuda {

// A handle of the library and its scratch memory, for one computation at a time.
class ProductLibrary {
 public:
  struct Options {
    Precision precision = Precision::kFloat32;
    bool tf32 = false;
    int virtual_workers = 1, own_virtual_workers = 1;
  };
  explicit ProductLibrary(const Options& options);
  ~ProductLibrary();
  const Options& options() const { return options_; }

 private:
  friend class Product;
  struct Handle;
  Options options_;
  std::unique_ptr<Handle> handle_;
  DeviceMemory scratch_;
};

// Row-major operands of `Precision`: out[r, c] (+)= Σ_k a·b, for each virtual worker.
struct ProductShape {
  // A matrix as it lies in memory.
  struct Operand {
    int64_t rows = 0, columns = 0, stride = 0;
    int64_t of_virtual_worker = 0;  // values from one to the next; 0: shared by all
    bool transposed = false;        // used as its transpose
  };
  enum class Epilogue { kNone, kBias, kBiasRelu };
  Operand a, b, out;
  bool float_out = false;  // otherwise in the operands' precision
  bool accumulate = false;
  Epilogue epilogue = Epilogue::kNone;  // the bias, one value per column, has out's precision
};

class Product {
 public:
  Product(const ProductLibrary& library, const ProductShape& shape);
  Product(Product&&) noexcept;
  ~Product();

  void Run(const void* a, const void* b, const void* bias, void* out, const Stream& stream) const;

 private:
  struct Plan;
  const ProductLibrary* library_;
  std::unique_ptr<Plan> plan_;
};

}  // namespace renzan::cuda
