#include "renzan/train/make_plan.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "renzan/base/error.h"
#include "renzan/base/float_codec.h"
#include "renzan/base/log.h"
#include "renzan/train/dense_gradients.h"
#include "renzan/train/heartbeat.h"
#include "renzan/train/memory_estimate.h"
#include "renzan/train/model_options.h"
#include "renzan/train/outcome.h"
#include "renzan/train/plan_file.h"
#include "renzan/train/topology.h"

namespace renzan {
namespace {

double ValueBytes(const std::string& type) {
  return static_cast<double>(EncodedBytes(ParseFloatType(type), 1));
}

}  // namespace

RunCosts RunCostsOf(const TrainConfig& config, const DatasetSchema& schema,
                    std::span<const double> pooling_factors, const Topology& topology,
                    int threads) {
  const std::unique_ptr<Model> model = MakeModel(ModelOptionsOf(config, schema));
  const std::string& dense = config.optimizer.dense.type;
  RunCosts run{
      .batch = config.training.batch_size,
      .virtual_workers = config.numerics.virtual_workers,
      .value_bytes = ValueBytes(config.numerics.embedding_precision),
      .forward = ParseRowCodec(config.comm.forward),
      .backward = ParseRowCodec(config.comm.backward),
      .dense_wire_bytes = ValueBytes(config.comm.dense),
      .flops_per_sample = FlopsPerSample(*model),
      .activations_per_sample = ActivationsPerSample(*model),
      .inputs_per_sample = 1 + static_cast<double>(schema.dense.size()),
      .parameters = static_cast<double>(model->layout().size()),
      .dense_states = dense == "adam"      ? 2.0
                      : dense == "adagrad" ? 1.0
                                           : 0.0,
      .dense_value_bytes = PrecisionOf(config.numerics) == Precision::kBFloat16 ? 2.0 : 4.0,
      .defers_gradients = DenseGradients::Defers(model->layout(), DenseGradientOptionsOf(config))};
  for (const TableSpec& table : TablesOf(config, schema, pooling_factors)) {
    run.inputs_per_sample += table.pooling_factor;
    run.pooled_per_sample += static_cast<double>(table.embedding_dim);
  }
  if (config.optimizer.sparse.type == "adagrad") run.state = RunCosts::State::kPerValue;
  if (config.optimizer.sparse.type == "rowwise_adagrad") run.state = RunCosts::State::kPerRow;
  run.fixed_memory_bytes = static_cast<double>(
      EstimateMemory(config, schema, pooling_factors, {}, topology.workers(), threads).total());
  return run;
}

ShardingPlan PlanOf(const TrainConfig& config, const DatasetSchema& schema,
                    std::span<const double> pooling_factors, const Topology& topology,
                    int threads) {
  const std::vector<TableSpec> tables = TablesOf(config, schema, pooling_factors);
  const ShardingConfig& sharding = config.sharding;
  if (!sharding.plan.empty()) return ReadPlan(sharding.plan, tables, topology.workers());
  const auto sharding_of = [](const std::string& word) {
    const std::vector<std::string>& names = ShardingNames();
    const auto found = std::find(names.begin(), names.end(), word);
    if (found == names.end()) Fail(ErrorCode::kConfig, "sharding: '{}' is unknown", word);
    return static_cast<Sharding>(found - names.begin());
  };
  std::vector<Sharding> choices;
  for (const TableSpec& table : tables) {
    const auto own = sharding.tables.find(table.name);
    choices.push_back(
        sharding_of(own != sharding.tables.end() ? own->second : sharding.default_sharding));
  }
  const RunCosts run = RunCostsOf(config, schema, pooling_factors, topology, threads);
  return MakePlan(tables, run, topology, choices, "sharding");
}

ShardingPlan AgreeOnPlan(const TrainConfig& config, const DatasetSchema& schema,
                         std::span<const double> pooling_factors, Communicator& comm, int threads,
                         bool goes_on) {
  Topology topology = TopologyOf(comm);
  if (comm.backend() == std::string("mpi")) topology.rates.UseSharedMemory();
  const std::vector<TableSpec> tables = TablesOf(config, schema, pooling_factors);
  const auto plan = [&] {
    const std::string& path = config.sharding.plan;
    if (!goes_on || path.empty()) return PlanOf(config, schema, pooling_factors, topology, threads);
    TrainConfig usable = config;
    const std::optional<int> workers = WorkersOfPlan(path);
    if (!workers) {
      LogWarning("there is no plan {}; planning without it", path);
    } else if (*workers != comm.world_size()) {
      LogWarning("{} is a plan for {} workers, and there are {}; planning without it", path,
                 *workers, comm.world_size());
    }
    if (workers != comm.world_size()) usable.sharding.plan = "";
    return PlanOf(usable, schema, pooling_factors, topology, threads);
  };
  Outcome mine;
  mine.error = TryWithHeartbeats(comm, [&] {
    if (comm.rank() == 0) mine.result = PrintPlan(plan(), tables, comm.world_size());
  });
  const Outcome first = BroadcastOutcome(comm, mine);
  if (first.error) throw *first.error;
  return ParsePlan(first.result, "worker 0's plan", tables, comm.world_size());
}

}  // namespace renzan
