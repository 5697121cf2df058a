#include "renzan/planning/plan_report.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/model/catalogue/catalogue.h"
#include "renzan/planning/make_plan.h"
#include "renzan/run_spec/run_spec.h"

namespace renzan {
namespace {

DeviceNeed GpuNeedOf(const RunSpec& spec, const PlannedRun& planned) {
  const auto map_of = [&](int rank) {
    return ShardMap(planned.tables, planned.plan, planned.topology.workers(), rank,
                    spec.numerics.virtual_workers, spec.numerics.batch);
  };
  const ShardMap first = map_of(0);
  int most = 0;
  for (int rank = 1; rank < first.world_size(); ++rank)
    if (first.assigned_to(rank).size() > first.assigned_to(most).size()) most = rank;
  const ShardMap map = map_of(most);
  const double limit = planned.topology.rates.gpu_memory_bytes;
  return DeviceNeedOf(
      spec, DeviceOptionsOf(spec, map), map,
      limit > 0 ? static_cast<int64_t>(limit) : std::numeric_limits<int64_t>::max());
}

}  // namespace

double PlannedRun::most_memory_bytes() const {
  double most = 0;
  for (size_t w = 0; w < workers.size(); ++w) most = std::max(most, memory_bytes(w));
  return most;
}

PlannedRun PlanRun(const PlanInput& input) {
  if (input.topology.workers() > input.config.numerics.virtual_workers)
    Fail(ErrorCode::kConfig, "workers {}",
         TooManyWorkers(input.topology.workers(), input.config.numerics.virtual_workers));
  RunSpec spec = MakeRunSpec(input.config, input.schema, input.pooling_factors);
  if (input.ranking) spec.memory.ranking = input.ranking->bytes;
  PlannedRun planned{.tables = spec.tables,
                     .plan = PlanOf(spec, input.topology, input.threads),
                     .topology = input.topology,
                     .run = RunCostsOf(spec, input.topology, input.threads),
                     .workers = {},
                     .step = {},
                     .gpu = {}};
  planned.workers = CostsOfPlan(planned.plan, planned.tables, planned.run, planned.topology);
  planned.step = EstimateStep(planned.workers, planned.run, planned.topology);
  if (spec.numerics.on_gpu) planned.gpu = GpuNeedOf(spec, planned);
  return planned;
}

std::vector<NamedPhase> PhasesOf(const StepEstimate& step) {
  std::vector<NamedPhase> phases = {{"reading", step.reading},
                                    {"lookup", step.lookup},
                                    {"output_dist", step.output_dist},
                                    {"forward and backward", step.forward_and_backward},
                                    {"gradients to owners", step.gradients},
                                    {"update, dense reduction", step.update},
                                    {"dense update", step.dense_update}};
  if (step.catch_up > 0) phases.insert(phases.begin() + 1, {"catch up", step.catch_up});
  return phases;
}

const char* BottleneckOf(const StepEstimate& step) {
  const std::vector<NamedPhase> phases = PhasesOf(step);
  return std::max_element(
             phases.begin(), phases.end(),
             [](const NamedPhase& a, const NamedPhase& b) { return a.seconds < b.seconds; })
      ->name;
}

namespace {

constexpr const char* kAutomaticSharding = "sharding: {default: auto}";

// Then rows need float32, and states for each value.
bool MovesAllRows(const TrainConfig& config) { return config.optimizer.sparse.rows == "all"; }

// Plans changed configurations, and keeps the changes that help.
class Changes {
 public:
  Changes(const PlanInput& input, const PlannedRun& now) : input_(input), now_(now) {}

  std::vector<Advice> Sorted() && {
    std::stable_sort(advice_.begin(), advice_.end(), [&](const Advice& a, const Advice& b) {
      return now_.fits() ? a.step_seconds < b.step_seconds
                         : a.most_memory_bytes < b.most_memory_bytes;
    });
    return std::move(advice_);
  }

  void ConsiderCodecs();
  void ConsiderPrecisions();
  void ConsiderOptimizer();
  void ConsiderSharding();
  void ConsiderWorkers();
  void ConsiderMemory();

 private:
  using Edit = std::function<void(PlanInput*)>;
  // Returns whether the run would fit.
  bool Consider(const std::string& change, const Edit& edit);
  bool Helps(const PlannedRun& then) const;
  bool ConsiderWorkers(int factor);

  const TrainConfig& config() const { return input_.config; }

  const PlanInput& input_;
  const PlannedRun& now_;
  std::vector<Advice> advice_;
};

bool Changes::Helps(const PlannedRun& then) const {
  if (now_.fits()) return then.fits() && then.step.total() < 0.95 * now_.step.total();
  const auto lacking = [&](const PlannedRun& planned) {
    return now_.fits_host() ? static_cast<double>(planned.gpu->bytes) : planned.most_memory_bytes();
  };
  return then.fits() || lacking(then) < 0.95 * lacking(now_);
}

// A plan file fits no other run, so that what is considered beside it includes leaving it out.
bool Changes::Consider(const std::string& change, const Edit& edit) {
  const bool leaves_out_plan = !config().sharding.plan.empty() && change != kAutomaticSharding;
  const std::string what =
      leaves_out_plan ? fmt::format("{}, {}", change, kAutomaticSharding) : change;
  PlanInput changed = input_;
  if (leaves_out_plan) changed.config.sharding = {};
  edit(&changed);
  if (changed.config.training.batch_size % changed.config.numerics.virtual_workers != 0)
    return false;
  const PlannedRun then = PlanRun(changed);
  if (Helps(then))
    advice_.push_back({what, then.step.total(), then.most_memory_bytes(), then.fits()});
  return then.fits();
}

void Changes::ConsiderCodecs() {
  const CommConfig& comm = config().comm;
  if (comm.forward == "fp32" && comm.backward == "fp32")
    Consider("comm.forward: fp16, comm.backward: bf16", [](PlanInput* changed) {
      changed->config.comm.forward = "fp16";
      changed->config.comm.backward = "bf16";
    });
  if (comm.backward != "int8" && comm.backward != "int4") {
    const std::string forward = comm.forward == "int4" ? "int4" : "int8";
    Consider(fmt::format("comm.forward: {}, comm.backward: int8", forward),
             [&](PlanInput* changed) {
               changed->config.comm.forward = forward;
               changed->config.comm.backward = "int8";
             });
  }
  if (comm.dense == "fp32")
    Consider("comm.dense: bf16", [](PlanInput* changed) { changed->config.comm.dense = "bf16"; });
}

void Changes::ConsiderPrecisions() {
  if (!MovesAllRows(config()) && config().numerics.embedding_precision == "fp32")
    Consider("numerics.embedding_precision: bf16",
             [](PlanInput* changed) { changed->config.numerics.embedding_precision = "bf16"; });
  if (config().device == "cuda" && config().numerics.precision != "bf16")
    Consider("numerics.precision: bf16",
             [](PlanInput* changed) { changed->config.numerics.precision = "bf16"; });
}

// A state for each row instead of each value.
void Changes::ConsiderOptimizer() {
  const std::string row_wise = InfoOf(SparseOptimizerType::kRowWiseAdagrad).name;
  if (!MovesAllRows(config()) &&
      config().optimizer.sparse.type == InfoOf(SparseOptimizerType::kAdagrad).name)
    Consider("optimizer.sparse.type: " + row_wise,
             [&](PlanInput* changed) { changed->config.optimizer.sparse.type = row_wise; });
}

void Changes::ConsiderSharding() {
  const int workers = input_.topology.workers();
  int blocks = 8;
  while (blocks < 2 * workers && blocks < 1024) blocks *= 2;
  if (workers > 1)
    Consider(fmt::format("numerics.row_blocks: {}", blocks), [&](PlanInput* changed) {
      changed->config.numerics.row_blocks = blocks;
      for (auto& [name, table] : changed->config.model.tables) table.row_blocks = 0;
    });
  const ShardingConfig& sharding = config().sharding;
  if (sharding.default_sharding != "auto" || !sharding.tables.empty() || !sharding.plan.empty())
    Consider(kAutomaticSharding, [](PlanInput* changed) { changed->config.sharding = {}; });
}

// Twice the workers, or as many as it takes to fit.
void Changes::ConsiderWorkers() {
  for (int factor = 2; factor * input_.topology.workers() <= kMostWorkers; factor *= 2)
    if (ConsiderWorkers(factor)) return;
}

// Returns whether larger factors need not be considered.
bool Changes::ConsiderWorkers(int factor) {
  const int workers = input_.topology.workers(), more = factor * workers;
  const bool too_many = more > config().numerics.virtual_workers;
  if (too_many && now_.fits()) return true;
  const int virtual_workers = static_cast<int>(std::bit_ceil(static_cast<unsigned>(more)));
  std::string what =
      fmt::format("{} on {}", Counted(more, "worker"),
                  Counted(factor * std::ssize(input_.topology.hosts), "such machine"));
  if (too_many) what += fmt::format(", numerics.virtual_workers: {}", virtual_workers);
  return Consider(what, [&](PlanInput* changed) {
    if (too_many) changed->config.numerics.virtual_workers = virtual_workers;
    std::vector<IndexRange>& hosts = changed->topology.hosts;
    for (int copy = 1; copy < factor; ++copy)
      for (const IndexRange host : input_.topology.hosts)
        hosts.push_back({copy * workers + host.begin, copy * workers + host.end});
  });
}

void Changes::ConsiderMemory() {
  if (now_.fits_host()) return;
  // Enough for the most loaded worker of the most even plan.
  const double gib = std::ceil(now_.most_memory_bytes() / 0.9 / 0x1p30);
  Consider(fmt::format("{:.0f} GiB per worker", gib),
           [&](PlanInput* changed) { changed->topology.rates.memory_bytes = gib * 0x1p30; });
}

}  // namespace

std::vector<Advice> WhatWouldHelp(const PlanInput& input, const PlannedRun& now) {
  Changes changes(input, now);
  changes.ConsiderCodecs();
  changes.ConsiderPrecisions();
  changes.ConsiderOptimizer();
  changes.ConsiderSharding();
  changes.ConsiderWorkers();
  changes.ConsiderMemory();
  return std::move(changes).Sorted();
}

DatasetSchema SchemaOf(const TrainConfig& config) {
  const FeaturesConfig& features = config.features;
  if (features.empty())
    Fail(ErrorCode::kConfig,
         "a plan needs the sizes of the tables: set data.train.path or features");
  DatasetSchema schema{.label = "label", .dense = features.dense};
  // The labels are not known: two tasks.
  if (const CatalogueEntry* entry = FindEntry(config.model.type);
      entry != nullptr && entry->has_several_outputs())
    schema.further_labels = {{.name = "label_2"}};
  for (size_t i = 0; i < features.categorical.size(); ++i) {
    const std::string& name = features.categorical[i];
    schema.categorical.push_back(
        {.name = name,
         .num_embeddings = features.num_embeddings[i],
         .multi_hot = std::find(features.multi_hot.begin(), features.multi_hot.end(), name) !=
                      features.multi_hot.end()});
    if (!features.tables.empty()) schema.categorical.back().table = features.tables[i];
    if (!features.max_lengths.empty())
      schema.categorical.back().max_length = features.max_lengths[i];
    if (!features.weights.empty()) schema.categorical.back().weights = features.weights[i];
  }
  return schema;
}

}  // namespace renzan
