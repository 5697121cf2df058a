#include "renzan/config/comm_config.h"

#include "renzan/config/decides.h"
#include "renzan/config/rules.h"
#include "renzan/tensor/row_codec.h"

namespace renzan {

void CommConfig::Describe(ConfigFields& fields) {
  fields.Tag(Decides::kRun);
  fields.Choice("backend", &backend, {"auto", "local", "gloo", "mpi"});
  fields.Tag(Decides::kArithmetic);
  fields.Choice("forward", &forward, RowCodecNames(),
                "codec of pooled embeddings; int8 and int4 share a power of two per row");
  // These decide only training.
  fields.Tag(Decides::kModel);
  fields.Choice("backward", &backward, RowCodecNames(), "codec of their gradients");
  fields.Range(
      "backward_scale", &backward_scale, 0, int64_t{1} << 40,
      "fp16 only: scale of these gradients on the wire, a power of two; 0: from the batch size");
  fields.Require(backward_scale == 0 || IsPowerOfTwo(backward_scale), "backward_scale",
                 "must be 0 or a power of two");
  fields.Range("error_feedback_rows", &error_feedback_rows, 0, int64_t{1} << 30,
               "add backward's rounding error to the row's next gradient, for this many rows per "
               "table and virtual worker, a power of two; 0: never");
  fields.Require(error_feedback_rows == 0 || IsPowerOfTwo(error_feedback_rows),
                 "error_feedback_rows", "must be 0 or a power of two");
  fields.Require(error_feedback_rows == 0 || backward != "fp32", "error_feedback_rows",
                 "needs a codec that rounds: set backward to bf16, fp16, int8 or int4");
  fields.Tag(Decides::kRun);
  fields.Field("guard", &guard,
               "at reports, compare backward's rounding error with the gradients' own noise");
  fields.Tag(Decides::kModel);
  fields.Choice("dense", &dense, FloatTypeNames(),
                "codec of dense gradients, at every node of the tree");
  fields.Tag(Decides::kRun);
  fields.Range("timeout_seconds", &timeout_seconds, 0.1, 86400, "of one exchange");
}

}  // namespace renzan
