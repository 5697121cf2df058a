#include "renzan/config/numerics_config.h"

#include "renzan/base/error.h"
#include "renzan/config/decides.h"
#include "renzan/config/rules.h"

namespace renzan {

Precision PrecisionOf(const NumericsConfig& config) {
  if (config.precision == "fp32" || config.precision == "tf32") return Precision::kFloat32;
  if (config.precision == "bf16") return Precision::kBFloat16;
  Fail(ErrorCode::kConfig, "numerics.precision: '{}' is unknown", config.precision);
}

void NumericsConfig::Describe(ConfigFields& fields) {
  fields.Tag(Decides::kArithmetic);
  fields.Range(
      "virtual_workers", &virtual_workers, 1, 1024,
      "the unit of arithmetic and the maximum number of workers; changing it changes rounding");
  fields.Require(IsPowerOfTwo(virtual_workers), "virtual_workers", "must be a power of two");
  fields.Tag(Decides::kClass);
  fields.Choice("isa", &isa, {"auto", "sse4", "avx2", "avx512", "avx512_bf16", "amx", "neon"},
                "instruction set class to pin; amx is emulated where there is none");
  fields.Tag(Decides::kArithmetic);
  fields.Choice("precision", &precision, {"fp32", "bf16", "tf32"},
                "of weights and activations in matrix products, which accumulate in fp32; tf32 on "
                "GPUs only");
  // The tensors that are saved, and their types.
  fields.Tag(Decides::kModel);
  fields.Choice("embedding_precision", &embedding_precision, FloatTypeNames(),
                "of tables in memory and files; 16-bit rows are rounded stochastically");
  fields.Range("row_blocks", &row_blocks, 0, kMaxBlocks,
               "parts of a table that can be on different workers; 0: each at most 128 MiB; "
               "changing it changes rounding");
  fields.Require(row_blocks == 0 || IsPowerOfTwo(row_blocks), "row_blocks",
                 "must be 0 or a power of two");
  fields.Range("column_blocks", &column_blocks, 1, 4096,
               "the same by columns; changing it changes rounding");
}

}  // namespace renzan
