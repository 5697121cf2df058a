#include "renzan/planning/make_plan.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/comm/heartbeat.h"
#include "renzan/comm/outcome.h"
#include "renzan/dense/dense_gradients.h"
#include "renzan/embedding/idle_row_steps.h"
#include "renzan/planning/memory_estimate.h"
#include "renzan/planning/plan_file.h"
#include "renzan/planning/topology.h"
#include "renzan/tensor/float_codec.h"

namespace renzan {
namespace {

double ValueBytes(FloatType type) { return static_cast<double>(EncodedBytes(type, 1)); }

Sharding ShardingNamed(const std::string& word) {
  const std::vector<std::string>& names = ShardingNames();
  const auto found = std::find(names.begin(), names.end(), word);
  if (found == names.end()) Fail(ErrorCode::kConfig, "sharding: '{}' is unknown", word);
  return static_cast<Sharding>(found - names.begin());
}

}  // namespace

RunCosts RunCostsOf(const RunSpec& spec, const Topology& topology, int threads) {
  const std::unique_ptr<Model> model = MakeModel(spec.model);
  const Numerics& numerics = spec.numerics;
  const SparseOptimizerInfo& sparse = InfoOf(spec.sparse_optimizer.type);
  RunCosts run{.batch = numerics.batch,
               .virtual_workers = numerics.virtual_workers,
               .value_bytes = ValueBytes(numerics.rows),
               .forward = numerics.forward,
               .backward = numerics.backward,
               .dense_wire_bytes = ValueBytes(numerics.dense_wire),
               .state_per_value = static_cast<double>(sparse.state_per_value()),
               .state_per_row = static_cast<double>(sparse.state_per_row()),
               .idle = IdleRowStepsOf(spec.sparse_optimizer),
               .flops_per_sample = model->FlopsPerSample(numerics.samples()),
               .activations_per_sample = model->ActivationsPerSample(),
               .inputs_per_sample = 1 + static_cast<double>(spec.model.num_dense),
               .parameters = static_cast<double>(model->layout().size()),
               .dense_states = static_cast<double>(InfoOf(spec.dense_optimizer.type).states.size()),
               .dense_value_bytes = numerics.precision == Precision::kBFloat16 ? 2.0 : 4.0,
               .defers_gradients =
                   DenseGradients::Defers(model->layout(), DenseGradientOptionsOf(numerics))};
  for (const TableSpec& table : spec.tables) {
    run.inputs_per_sample += table.pooling_factor;
    run.pooled_per_sample += static_cast<double>(table.bags() * table.embedding_dim);
  }
  run.fixed_memory_bytes =
      static_cast<double>(EstimateMemory(spec, {}, topology.workers(), threads).total());
  return run;
}

ShardingPlan PlanOf(const RunSpec& spec, const Topology& topology, int threads) {
  const ShardingConfig& sharding = spec.sharding;
  if (!sharding.plan.empty()) return ReadPlan(sharding.plan, spec.tables, topology.workers());
  std::vector<Sharding> choices;
  for (const TableSpec& table : spec.tables) {
    const auto own = sharding.tables.find(table.name);
    choices.push_back(
        ShardingNamed(own != sharding.tables.end() ? own->second : sharding.default_sharding));
  }
  return MakePlan(spec.tables, RunCostsOf(spec, topology, threads), topology, choices, "sharding");
}

ShardingPlan AgreeOnPlan(const RunSpec& spec, Communicator& comm, int threads, bool goes_on) {
  Topology topology = TopologyOf(comm);
  if (comm.backend() == std::string("mpi")) topology.rates.UseSharedMemory();
  const auto plan = [&] {
    const std::string& path = spec.sharding.plan;
    if (!goes_on || path.empty()) return PlanOf(spec, topology, threads);
    RunSpec usable = spec;
    const std::optional<int> workers = WorkersOfPlan(path);
    if (!workers) {
      LogWarning("there is no plan {}; planning without it", path);
    } else if (*workers != comm.world_size()) {
      LogWarning("{} is a plan for {}, and there are {}; planning without it", path,
                 Counted(*workers, "worker"), comm.world_size());
    }
    if (workers != comm.world_size()) usable.sharding.plan = "";
    return PlanOf(usable, topology, threads);
  };
  Outcome mine;
  mine.error = TryWithHeartbeats(comm, [&] {
    if (comm.rank() == 0) mine.result = PrintPlan(plan(), spec.tables, comm.world_size());
  });
  const Outcome first = BroadcastOutcome(comm, mine);
  if (first.error) throw *first.error;
  return ParsePlan(first.result, "worker 0's plan", spec.tables, comm.world_size());
}

}  // namespace renzan
