#include "renzan/plan/cost_model.h"

#include <algorithm>
#include <cmath>

#include "renzan/plan/replicated_gradients.h"

namespace renzan {
namespace {

constexpr double kFloat = 4, kId = 4, kLookup = 8, kLine = 64;

// Fitted to the models of bench/estimates: how many times a phase moves its data through memory,
// where caches hold some of it and the count does not follow from what the phase does.
constexpr double kMisses = 0.5;  // of looked-up rows: frequent ones are in a cache
constexpr double kPooledPasses = 8, kActivationPasses = 3;  // of the dense part's values
constexpr double kPackPasses = 4, kDensePasses = 3, kDenseStatePasses = 2;
// Workers wait for the slowest of them.
constexpr double kStraggler = 1.05;

// The cost of encoding or decoding a value, in bytes that memory could have moved meanwhile.
double CodecBytes(RowCodec codec) {
  switch (codec) {
    case RowCodec::kFloat32:
      return 0;
    case RowCodec::kFloat16:
    case RowCodec::kBFloat16:
      return 4;
    case RowCodec::kInt8:
    case RowCodec::kInt4:
      return 10;
  }
  return 0;
}

// What memory moves to read so many bytes: whole cache lines.
double WholeLines(double bytes) { return kLine * std::ceil(bytes / kLine); }

// Calls visit(rank, seconds) with each worker's time for an exchange in which worker h sends
// bytes_of(h) / workers to each worker. Both directions run at once; the workers of a host share
// its network evenly.
template <class BytesOf, class Visit>
void ForEachExchange(const Topology& topology, const BytesOf& bytes_of, const Visit& visit) {
  const double workers = topology.workers();
  if (workers == 1) return;
  double all = 0;
  for (int rank = 0; rank < topology.workers(); ++rank) all += bytes_of(rank);
  if (all < 1) return;  // subtracting costs leaves rounding residues
  for (const IndexRange host : topology.hosts) {
    double of_host = 0;
    for (int rank = host.begin; rank < host.end; ++rank) of_host += bytes_of(rank);
    for (int rank = host.begin; rank < host.end; ++rank) {
      const double mine = bytes_of(rank);
      const double near = std::max(mine * (host.size() - 1), of_host - mine) / workers;
      const double far = std::max(mine * (workers - host.size()), all - of_host) / workers;
      visit(rank, near / topology.rates.intra_host_bytes + far / topology.rates.inter_host_bytes +
                      topology.rates.exchange_seconds);
    }
  }
}

// The slowest worker's time.
template <class BytesOf>
double ExchangeSeconds(const Topology& topology, const BytesOf& bytes_of) {
  double slowest = 0;
  ForEachExchange(topology, bytes_of,
                  [&](int, double seconds) { slowest = std::max(slowest, seconds); });
  return slowest;
}

// The gradients that a worker sends. For replicated shards, every worker sends its samples'
// gradients, or its part of their sums, to every other worker.
double GradientBytes(const WorkerCost& worker) {
  return worker.gradient_bytes + worker.replicated_gradient_bytes;
}

}  // namespace

ShardCost CostOfShard(const Shard& shard, const TableSpec& table, const RunCosts& run,
                      const Topology& topology) {
  const MachineRates& rates = topology.rates;
  const bool replicated = shard.rank == kEveryRank;
  const double columns = static_cast<double>(table.block_columns());
  const double batch = static_cast<double>(run.batch);
  const double workers = topology.workers();
  const auto rows = static_cast<double>(table.rows_of_blocks(shard.row_blocks));
  const double share = static_cast<double>(shard.row_blocks.size()) / table.row_blocks;
  const double lookups = batch * std::max(table.pooling_factor, 1e-9) * share;
  // Bags with a lookup here, and distinct rows looked up, if all rows are equally likely.
  const auto all_bags = static_cast<double>(table.bags());
  const double bags =
      batch * all_bags * (1 - std::pow(1 - share, std::max(1.0, table.pooling_factor / all_bags)));
  const double distinct = rows * -std::expm1(-lookups / rows);
  const double row_bytes = run.value_bytes * columns;
  const double state_bytes = kFloat * (run.state_per_value * columns + run.state_per_row);
  const double row_traffic = WholeLines(row_bytes), state_traffic = WholeLines(state_bytes);
  const double own = replicated ? 1 / workers : 1;  // the part of the batch that it pools
  // The part of that which is pooled for others, who receive it in messages.
  const double travels = replicated ? 0 : 1 - 1 / workers;

  const auto wire_bytes = [&](RowCodec codec) {
    return static_cast<double>(EncodedRowBytes(codec, static_cast<size_t>(table.block_columns())));
  };

  // The part of the batch whose gradients it adds up, and the number of values in their sums.
  const bool reduced = replicated && workers > 1 &&
                       ReducesGradients(static_cast<int64_t>(rows), table.block_columns(),
                                        run.backward, run.batch * table.bags());
  const double added = reduced ? 1 / workers : 1, sums = reduced ? rows * columns : 0;
  const double own_arrays = std::ceil(run.virtual_workers / workers) + 2;  // of sums

  ShardCost cost;
  cost.lookup_seconds =
      own * (kMisses * lookups * row_traffic / rates.row_bytes +
             (kFloat * travels + CodecBytes(run.forward)) * bags * columns / rates.stream_bytes);
  const bool in_place = workers == 1 && run.backward == RowCodec::kFloat32;
  cost.receive_seconds =
      in_place ? 0
               : (added * bags *
                      ((kFloat + CodecBytes(run.backward)) * columns + wire_bytes(run.backward)) +
                  2 * kFloat * own_arrays * sums) /
                     rates.stream_bytes;
  cost.update_seconds = 2 * kMisses * distinct * (row_traffic + state_traffic) / rates.row_bytes +
                        (kFloat * columns * added * (lookups + 2 * bags) + 4 * kLookup * lookups) /
                            rates.stream_bytes;
  if (run.idle.move && !table.frozen) {
    // All rows have been looked up at some time: nobody knows yet which ones.
    const IdleRowsCost idle = CostOfIdleRows(run.idle, {.rows = rows,
                                                        .looked_up = distinct,
                                                        .columns = columns,
                                                        .bytes = row_traffic + state_traffic});
    cost.catch_up_seconds = idle.flops / rates.matrix_flops +
                            idle.stream_bytes / rates.stream_bytes +
                            kMisses * idle.row_bytes / rates.row_bytes;
    cost.table_bytes += rows * kId;
  }
  cost.pooled_bytes = replicated ? 0 : bags * wire_bytes(run.forward);
  cost.gradient_bytes = reduced ? 2 * kFloat * sums : bags * wire_bytes(run.backward);
  cost.table_bytes += rows * (row_bytes + state_bytes + 3.0 / 8);
  cost.checkpoint_bytes = rows * kId;
  // Two batches of ids and sorted lookups; gradients, and messages both ways.
  const double messages =
      reduced ? bags / workers * wire_bytes(run.backward) + kFloat * own_arrays * sums
              : (replicated ? 2 : 1) * cost.gradient_bytes;
  const double weights = table.weighted ? 2 * kFloat : 0;  // with their bags
  cost.exchange_bytes = 2 * lookups * (3 * kId + kLookup + weights) + kFloat * bags * columns +
                        (workers > 1 ? cost.pooled_bytes + messages : 0);
  return cost;
}

void WorkerCost::Add(const Shard& shard, const ShardCost& cost, double sign) {
  lookup_seconds += sign * cost.lookup_seconds;
  receive_seconds += sign * cost.receive_seconds;
  update_seconds += sign * cost.update_seconds;
  catch_up_seconds += sign * cost.catch_up_seconds;
  table_bytes += sign * cost.table_bytes;
  exchange_bytes += sign * cost.exchange_bytes;
  checkpoint_bytes += sign * cost.checkpoint_bytes;
  if (shard.rank == kEveryRank) {
    replicated_gradient_bytes += sign * cost.gradient_bytes;
  } else {
    pooled_bytes += sign * cost.pooled_bytes;
    gradient_bytes += sign * cost.gradient_bytes;
  }
}

namespace {

// What every worker does in a phase while it exchanges, wherever the tables are.
struct DenseTimes {
  double packing = 0;    // of parameters, during output_dist
  double reduction = 0;  // its local part, while gradients are sent to owners
  double exchange = 0;   // of dense gradients, during the update of the tables
};

DenseTimes DenseTimesOf(const RunCosts& run, const Topology& topology) {
  const MachineRates& rates = topology.rates;
  // The virtual workers of the worker that has the most.
  const double own = std::ceil(run.virtual_workers / static_cast<double>(topology.workers()));
  return {.packing =
              kPackPasses * (kFloat + run.dense_value_bytes) * run.parameters / rates.stream_bytes,
          .reduction =
              kFloat * run.parameters * (run.defers_gradients ? 1 : own + 1) / rates.stream_bytes,
          // All-to-all of partial sums and all-gather of the sums.
          .exchange = 2 * ExchangeSeconds(topology, [&](int) {
                        return run.dense_wire_bytes * run.parameters;
                      })};
}

}  // namespace

StepEstimate EstimateStep(std::span<const WorkerCost> workers, const RunCosts& run,
                          const Topology& topology) {
  const MachineRates& rates = topology.rates;
  const double n = topology.workers(), virtual_workers = run.virtual_workers;
  // The virtual workers of the worker that has the most.
  const double own = std::ceil(virtual_workers / n);
  StepEstimate step;
  double update = 0, receive = 0;
  for (const WorkerCost& worker : workers) {
    step.lookup = std::max(step.lookup, worker.lookup_seconds);
    receive = std::max(receive, worker.receive_seconds);
    update = std::max(update, worker.update_seconds);
    step.catch_up = std::max(step.catch_up, worker.catch_up_seconds);
  }
  const double samples = static_cast<double>(run.batch) * own / virtual_workers;
  step.reading = samples * run.inputs_per_sample * kLine / rates.row_bytes +
                 (n > 1 ? rates.exchange_seconds : 0);
  const DenseTimes of_all = DenseTimesOf(run, topology);
  step.output_dist = std::max(of_all.packing, ExchangeSeconds(topology, [&](int rank) {
                                return workers[static_cast<size_t>(rank)].pooled_bytes;
                              }));
  const double value = run.dense_value_bytes;
  const double codec = CodecBytes(run.forward) + CodecBytes(run.backward);
  step.forward_and_backward = (n > 1 ? kStraggler : 1) * samples *
                              (run.flops_per_sample / rates.matrix_flops +
                               (value * kActivationPasses * run.activations_per_sample +
                                (value * kPooledPasses + kFloat + codec) * run.pooled_per_sample) /
                                   rates.stream_bytes);
  const double gradients = ExchangeSeconds(
      topology, [&](int rank) { return GradientBytes(workers[static_cast<size_t>(rank)]); });
  step.gradients = std::max(of_all.reduction, gradients) + receive;
  step.update = std::max(update, of_all.exchange);
  step.dense_update = kFloat * run.parameters *
                      (kDensePasses + kDenseStatePasses * run.dense_states) / rates.stream_bytes;
  return step;
}

std::vector<WorkerTimes> TimesOfWorkers(std::span<const WorkerCost> workers, const RunCosts& run,
                                        const Topology& topology) {
  const DenseTimes of_all = DenseTimesOf(run, topology);
  std::vector<WorkerTimes> times(workers.size());
  for (size_t w = 0; w < workers.size(); ++w)
    times[w] = {.catch_up = workers[w].catch_up_seconds,
                .lookup = workers[w].lookup_seconds,
                .output_dist = of_all.packing,
                .gradients = of_all.reduction,
                .update = std::max(workers[w].update_seconds, of_all.exchange)};
  const auto hide = [](double& phase, double exchange) { phase = std::max(phase, exchange); };
  ForEachExchange(
      topology, [&](int rank) { return workers[static_cast<size_t>(rank)].pooled_bytes; },
      [&](int rank, double seconds) {
        hide(times[static_cast<size_t>(rank)].output_dist, seconds);
      });
  ForEachExchange(
      topology, [&](int rank) { return GradientBytes(workers[static_cast<size_t>(rank)]); },
      [&](int rank, double seconds) { hide(times[static_cast<size_t>(rank)].gradients, seconds); });
  for (size_t w = 0; w < workers.size(); ++w) times[w].gradients += workers[w].receive_seconds;
  return times;
}

std::vector<WorkerCost> CostsOfPlan(const ShardingPlan& plan, std::span<const TableSpec> tables,
                                    const RunCosts& run, const Topology& topology) {
  std::vector<WorkerCost> workers(static_cast<size_t>(topology.workers()));
  for (const Shard& shard : plan.shards) {
    const ShardCost cost = CostOfShard(shard, tables[shard.table], run, topology);
    for (int rank = 0; rank < topology.workers(); ++rank)
      if (shard.on(rank)) workers[static_cast<size_t>(rank)].Add(shard, cost);
  }
  return workers;
}

}  // namespace renzan
