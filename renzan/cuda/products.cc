#include "renzan/cuda/products.h"

#include <cublasLt.h>

#include <array>
#include <utility>

#include "renzan/base/error.h"

namespace renzan::cuda {
namespace {

constexpr size_t kScratchBytes = size_t{32} << 20;  // what NVIDIA recommends on Hopper
// Alignment of all rows and all virtual workers' matrices, in bytes.
constexpr uint32_t kAlignment = 16;

void CheckProduct(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  Check(cudaDeviceSynchronize(), what);  // reports the cause if the GPU was lost
  Fail(status == CUBLAS_STATUS_NOT_INITIALIZED ? ErrorCode::kUnavailable : ErrorCode::kSoftware,
       "cuBLASLt: {}: {}", what, cublasLtGetStatusString(status));
}

}  // namespace

struct ProductLibrary::Handle {
  cublasLtHandle_t lt = nullptr;
};

ProductLibrary::ProductLibrary(const Options& options)
    : options_(options), handle_(std::make_unique<Handle>()), scratch_(kScratchBytes) {
  CheckProduct(cublasLtCreate(&handle_->lt), "starting");
}

ProductLibrary::~ProductLibrary() { cublasLtDestroy(handle_->lt); }

// cuBLASLt's matrices are column-major, and a row-major matrix read that way is its own transpose.
// So it computes outᵀ = bᵀ · aᵀ, with b as its first operand.
struct Product::Plan {
  struct Layouts {
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, out = nullptr;
    ~Layouts() {
      for (const cublasLtMatrixLayout_t layout : {a, b, out})
        if (layout != nullptr) cublasLtMatrixLayoutDestroy(layout);
    }
  };
  cublasLtMatmulDesc_t operation = nullptr;
  Layouts own;
  cublasLtMatmulAlgo_t algorithm;
  bool accumulate = false, has_bias = false;

  ~Plan() {
    if (operation != nullptr) cublasLtMatmulDescDestroy(operation);
  }

  template <class Value>
  void Set(cublasLtMatmulDescAttributes_t attribute, Value value) {
    CheckProduct(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof(value)),
                 "describing a product");
  }
};

namespace {

cudaDataType_t TypeOf(Precision precision) {
  return precision == Precision::kBFloat16 ? CUDA_R_16BF : CUDA_R_32F;
}

cublasLtMatrixLayout_t LayoutOf(const ProductShape::Operand& matrix, cudaDataType_t type,
                                int32_t count) {
  cublasLtMatrixLayout_t layout = nullptr;
  CheckProduct(cublasLtMatrixLayoutCreate(&layout, type, static_cast<uint64_t>(matrix.columns),
                                          static_cast<uint64_t>(matrix.rows), matrix.stride),
               "describing a matrix");
  const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, auto value) {
    CheckProduct(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof(value)),
                 "describing a matrix");
  };
  set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count);
  set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, matrix.of_virtual_worker);
  return layout;
}

int32_t Splits(const cublasLtMatmulAlgo_t& algorithm) {
  int32_t splits = 1;
  size_t written = 0;
  cublasLtMatmulAlgoConfigGetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &splits,
                                       sizeof(splits), &written);
  return splits;
}

}  // namespace

Product::Product(const ProductLibrary& library, const ProductShape& shape)
    : library_(&library), plan_(std::make_unique<Plan>()) {
  const ProductLibrary::Options& options = library.options_;
  const cudaDataType_t in = TypeOf(options.precision);
  const cudaDataType_t out = shape.float_out ? CUDA_R_32F : in;
  Plan& plan = *plan_;
  plan.accumulate = shape.accumulate;
  plan.has_bias = shape.epilogue != ProductShape::Epilogue::kNone;
  CheckProduct(cublasLtMatmulDescCreate(
                   &plan.operation,
                   options.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
               "describing a product");
  const auto operation = [](const ProductShape::Operand& operand) {
    return static_cast<int32_t>(operand.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  };
  plan.Set(CUBLASLT_MATMUL_DESC_TRANSA, operation(shape.b));
  plan.Set(CUBLASLT_MATMUL_DESC_TRANSB, operation(shape.a));
  if (plan.has_bias) {
    plan.Set(CUBLASLT_MATMUL_DESC_EPILOGUE, shape.epilogue == ProductShape::Epilogue::kBias
                                                ? CUBLASLT_EPILOGUE_BIAS
                                                : CUBLASLT_EPILOGUE_RELU_BIAS);
    plan.Set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<int32_t>(out));
    plan.Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, library.scratch_.as<const void>());
  }
  const auto layouts = [&](int count, Plan::Layouts* to) {
    to->a = LayoutOf(shape.a, in, count);
    to->b = LayoutOf(shape.b, in, count);
    to->out = LayoutOf(shape.out, out, count);
  };
  layouts(options.own_virtual_workers, &plan.own);
  Plan::Layouts all;
  layouts(options.virtual_workers, &all);

  cublasLtMatmulPreference_t preference = nullptr;
  CheckProduct(cublasLtMatmulPreferenceCreate(&preference), "choosing an algorithm");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    CheckProduct(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)),
                 "choosing an algorithm");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kScratchBytes);
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, kAlignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, kAlignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, kAlignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, kAlignment);
  std::array<cublasLtMatmulHeuristicResult_t, 16> found;
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      library.handle_->lt, plan.operation, all.b, all.a, all.out, all.out, preference,
      static_cast<int>(found.size()), found.data(), &count);
  cublasLtMatmulPreferenceDestroy(preference);
  CheckProduct(status, "choosing an algorithm");
  for (int i = 0; i < count; ++i) {
    const cublasLtMatmulHeuristicResult_t& candidate = found[static_cast<size_t>(i)];
    if (candidate.state != CUBLAS_STATUS_SUCCESS || Splits(candidate.algo) > 1) continue;
    cublasLtMatmulHeuristicResult_t here;
    // Another algorithm would give these virtual workers other bits than on other workers.
    CheckProduct(
        cublasLtMatmulAlgoCheck(library.handle_->lt, plan.operation, plan.own.b, plan.own.a,
                                plan.own.out, plan.own.out, &candidate.algo, &here),
        "choosing an algorithm for some of the virtual workers");
    plan.algorithm = candidate.algo;
    return;
  }
  Fail(ErrorCode::kSoftware, "cuBLASLt has no algorithm for a product of [{}, {}] and [{}, {}]",
       shape.a.rows, shape.a.columns, shape.b.rows, shape.b.columns);
}

Product::Product(Product&&) noexcept = default;
Product::~Product() = default;

void Product::Run(const void* a, const void* b, const void* bias, void* out,
                  const Stream& stream) const {
  if (plan_->has_bias) plan_->Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  const float one = 1.0f, beta = plan_->accumulate ? 1.0f : 0.0f;
  CheckProduct(
      cublasLtMatmul(library_->handle_->lt, plan_->operation, &one, b, plan_->own.b, a,
                     plan_->own.a, &beta, out, plan_->own.out, out, plan_->own.out,
                     &plan_->algorithm, library_->scratch_.as<void>(), kScratchBytes, stream.get()),
      "multiplying");
}

}  // namespace renzan::cuda
