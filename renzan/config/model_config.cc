#include "renzan/config/model_config.h"

#include "renzan/config/decides.h"
#include "renzan/config/rules.h"
#include "renzan/model/model.h"

namespace renzan {

namespace {

bool AllPositive(const std::vector<int64_t>& sizes) {
  for (int64_t size : sizes)
    if (size < 1 || size > (int64_t{1} << 20)) return false;
  return true;
}

}  // namespace

void TableConfig::Describe(ConfigFields& fields) {
  fields.Tag(Decides::kModel);
  fields.Choice("pooling", &pooling, {"", "sum", "mean"},
                "of the rows of a bag; empty: as in model");
  fields.Range("embedding_dim", &embedding_dim, 0, 4096,
               "0: as in model; dlrm projects other rows to the model's");
  fields.Range("row_blocks", &row_blocks, 0, kMaxBlocks, "0: as in numerics");
  fields.Require(row_blocks == 0 || IsPowerOfTwo(row_blocks), "row_blocks",
                 "must be 0 or a power of two");
  fields.Range("column_blocks", &column_blocks, 0, 4096, "0: as in numerics");
  fields.Tag(Decides::kRun);
  fields.Range("pooling_factor", &pooling_factor, 0, 1e9,
               "mean lookups per sample, for `renzan plan` without data; 0: counted in the data");
}

void ModelConfig::Describe(ConfigFields& fields) {
  fields.Tag(Decides::kModel);
  fields.Choice("type", &type, ModelTypeNames());
  fields.Range("embedding_dim", &embedding_dim, 1, 4096);
  fields.Field("bottom_mlp", &bottom_mlp, "hidden layers; embedding_dim comes after them");
  fields.Require(AllPositive(bottom_mlp), "bottom_mlp", "layer sizes must be 1 to 1048576");
  fields.Field("top_mlp", &top_mlp, "hidden layers; the logit comes after them");
  fields.Require(AllPositive(top_mlp), "top_mlp", "layer sizes must be 1 to 1048576");
  fields.Range("cross_layers", &cross_layers, 0, 64, "dlrm_dcnv2 only");
  fields.Range("cross_rank", &cross_rank, 1, 65536, "dlrm_dcnv2 only");
  fields.Choice("pooling", &pooling, {"sum", "mean"}, "of multi-hot features not named in tables");
  fields.Range("dropout", &dropout, 0, 1, "after the hidden layers of both MLPs, in training");
  fields.Require(dropout < 1, "dropout", "must be below 1");
  fields.Map("tables", &tables, "settings of single features by name");
}

}  // namespace renzan
