#include "renzan/config/checkpoint_config.h"

#include "renzan/base/duration.h"
#include "renzan/config/decides.h"
#include "renzan/config/rules.h"
#include "renzan/storage/storage.h"

namespace renzan {

double CheckpointConfig::every_seconds() const { return ParseDuration(every).value_or(0); }

void CheckpointConfig::Describe(ConfigFields& fields) {
  fields.Tag(Decides::kPlacement);
  fields.Field("dir", &dir,
               "shared by all workers, or s3://bucket/prefix; RUN/checkpoints when empty");
  fields.Field("stage", &stage,
               "for checkpoints in a store: a directory on a local disk to write files to "
               "first, so that training waits less; empty: upload from memory");
  fields.Require(!IsInStore(stage), "stage", "must be a directory of this machine");
  fields.Tag(Decides::kRun);
  fields.Field("every", &every, "such as 90s, 10m or 1h; 0: not by time");
  fields.Require(ParseDuration(every).has_value(), "every",
                 "must be a duration such as 90s, 10m or 1h, or 0");
  fields.Range("every_steps", &every_steps, 0, kMaxSteps, "0: not by steps");
  fields.Range("keep", &keep, 1, 1000000, "how many to keep, in addition to their bases");
  fields.Field("incremental", &incremental,
               "write only the rows changed since the last full checkpoint, while that is smaller");
  fields.Field(
      "sparse", &sparse,
      "of a table of 64 MiB or more, save only the rows that may have been trained, if they "
      "are at most a quarter; false: other programs need not compute the others");
  fields.Choice("quantize", &quantize, {"none", "int8"},
                "rows of incremental checkpoints; with int8, resuming from one is not bit-exact");
  fields.Tag(Decides::kPlacement);
  fields.Range("max_copies_mib", &max_copies_mib, 0, int64_t{1} << 30,
               "a worker's memory for copies of rows that change before a checkpoint has written "
               "them; beyond it, training waits; 0: what is left");
}

}  // namespace renzan
