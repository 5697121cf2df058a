#include "renzan/planning/device_options.h"

#include <algorithm>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/cuda/load.h"
#include "renzan/plan/bag_places.h"

namespace renzan {
namespace {

// Why the device cannot compute whole steps, as far as the configuration tells, or "".
std::string WhyNotWhole(const RunSpec& spec, int workers) {
  const Numerics& numerics = spec.numerics;
  if (workers > 1) return "there are several workers";
  if (numerics.forward != RowCodec::kFloat32 || numerics.backward != RowCodec::kFloat32 ||
      numerics.dense_wire != FloatType::kFloat32)
    return "comm has a codec that rounds";
  if (numerics.rows != FloatType::kFloat32) return "numerics.embedding_precision is not fp32";
  if (spec.learning_rates.max_gradient_norm > 0) return "optimizer.max_gradient_norm is set";
  return "";
}

std::string WhyNotWhole(const RunSpec& spec, const ShardMap& map) {
  const std::string of_spec = WhyNotWhole(spec, map.world_size());
  if (!of_spec.empty()) return of_spec;
  for (const size_t s : map.held()) {
    if (map.table_of(s).bags() > 1) return "features share a table";
    if (map.shards()[s].row_blocks.size() != map.table_of(s).row_blocks)
      return "a table is split by rows";
    if (map.columns_of(s) % 8 != 0) return "a table's columns are not a multiple of 8";
    // State for a whole row needs the gradients of all columns.
    if (map.table_of(s).column_blocks > 1 && InfoOf(spec.sparse_optimizer.type).state_per_row() > 0)
      return "a table has several column blocks";
  }
  return "";
}

bool MayComputeWholeSteps(const RunSpec& spec, int workers) {
  return spec.numerics.on_gpu && WhyNotWhole(spec, workers).empty();
}

constexpr int kMostReaders = 8;  // each holds a batch in memory

std::vector<DeviceTableOptions> TablesOnDevice(const ShardMap& map,
                                               const SparseOptimizerOptions& optimizer) {
  const std::vector<BagPlace> places = SideBySide(map.tables(), 0);
  std::vector<DeviceTableOptions> tables;
  for (const size_t s : map.held()) {
    const Shard& shard = map.shards()[s];
    tables.push_back(
        {.rows = map.rows_of(s).size(),
         .dim = map.columns_of(s),
         .state_width = StateFloatsPerRow(optimizer.type, map.columns_of(s)),
         .first_column = places[static_cast<size_t>(map.bags_of(shard.table).begin)].column +
                         shard.column_block * map.columns_of(s),
         .mean = map.table_of(s).pooling == Pooling::kMean,
         .pooling_factor = map.table_of(s).pooling_factor,
         .block_begin = map.rows_of(s).first()});
  }
  return tables;
}

}  // namespace

int PoolThreads(const RunSpec& spec, int workers, int threads) {
  if (!MayComputeWholeSteps(spec, workers)) return threads;
  return std::max({threads - kMostReaders, threads / 2, 1});
}

int BatchReaders(const RunSpec& spec, int workers, int pool_threads) {
  return MayComputeWholeSteps(spec, workers) ? std::min(pool_threads, kMostReaders) : 1;
}

int64_t FreeDeviceBytes(int workers) {
  try {
    const int devices = CountDevices();
    return FactsOfDevice(0).free_bytes / ((workers + devices - 1) / devices);
  } catch (const Error&) {
    return 0;
  }
}

int64_t MebibytesOf(int64_t bytes) { return (bytes + (1 << 20) - 1) >> 20; }

DeviceModelOptions DeviceOptionsOf(const RunSpec& spec, const ShardMap& map) {
  const bool one_learning_rate = std::ranges::all_of(
      spec.tables, [](const TableSpec& t) { return t.learning_rate_factor == 1; });
  CheckDeviceSupports(spec.model, spec.loss, spec.sparse_optimizer, one_learning_rate);
  const auto reject = [](const char* what) {
    Fail(ErrorCode::kConfig, "device: cuda does not support {}: use device: cpu", what);
  };
  if (std::ranges::any_of(spec.tables, &TableSpec::frozen)) reject("model.tables.NAME.frozen");
  if (!spec.learning_rates.blocks.empty()) reject("optimizer.blocks");
  for (const TableSpec& table : spec.tables)
    if (table.weighted)
      reject(fmt::format("bags with weights, which table '{}' has", Escape(table.name)).c_str());
  return {.model = spec.model,
          .tf32 = spec.numerics.tf32,
          .virtual_workers = map.virtual_workers(),
          .own_virtual_workers = map.own().size(),
          .first_virtual_worker = map.own().begin,
          .samples = map.samples_per_virtual_worker(),
          .tables = TablesOnDevice(map, spec.sparse_optimizer),
          .sparse = spec.sparse_optimizer,
          .dense = spec.dense_optimizer};
}

DeviceNeed DeviceNeedOf(const RunSpec& spec, const DeviceModelOptions& options, const ShardMap& map,
                        int64_t free_bytes) {
  const DeviceBytes bytes = EstimateDeviceBytes(options);
  DeviceNeed need = {.bytes = bytes.rest + bytes.tables, .why_not_tables = WhyNotWhole(spec, map)};
  if (need.has_tables() && need.bytes <= free_bytes) return need;
  if (need.has_tables())
    need.why_not_tables =
        fmt::format("they need {} MiB, and {} MiB are free", MebibytesOf(bytes.tables),
                    std::max<int64_t>(0, free_bytes - bytes.rest) >> 20);
  need.bytes = bytes.rest + bytes.pooled;
  return need;
}

}  // namespace renzan
