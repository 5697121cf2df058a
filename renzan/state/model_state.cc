#include "renzan/state/model_state.h"

#include "renzan/run_spec/parameter_groups.h"

namespace renzan {
namespace {

ShardedEmbeddingsOptions EmbeddingOptions(const RunSpec& spec, const ShardingPlan& plan,
                                          InitialValues initial_values) {
  const Numerics& numerics = spec.numerics;
  return {.tables = spec.tables,
          .plan = plan,
          .batch = numerics.batch,
          .virtual_workers = numerics.virtual_workers,
          .forward = numerics.forward,
          .backward = numerics.backward,
          .backward_scale = numerics.backward_scale,
          .error_feedback_rows = numerics.error_feedback_rows,
          .optimizer = spec.sparse_optimizer,
          .rows = numerics.rows,
          .initial_values = initial_values,
          .seed = spec.seed};
}

}  // namespace

ModelState::ModelState(const RunSpec& spec, const ShardingPlan& plan, Communicator& comm,
                       ThreadPool& pool, InitialValues initial_values)
    : spec_(spec),
      pool_(pool),
      model_(MakeModel(spec.model)),
      embeddings_(comm, pool, EmbeddingOptions(spec, plan, initial_values)),
      parameters_(static_cast<size_t>(model_->layout().size())),
      dense_optimizer_(spec.dense_optimizer, parameters_.size()) {
  dense_optimizer_.set_groups(GroupsOf(*model_, spec.learning_rates.blocks));
  if (initial_values == InitialValues::kDraw)
    model_->layout().Initialize(spec.seed, parameters_.span());
}

}  // namespace renzan
