#include "renzan/train/device_options.h"

#include <algorithm>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/cuda/load.h"
#include "renzan/train/model_options.h"

namespace renzan {
namespace {

// Why whole steps cannot be computed on the device, as far as the configuration tells, or "".
std::string WhyNotWhole(const TrainConfig& config, int workers) {
  if (workers > 1) return "there are several workers";
  if (config.comm.forward != "fp32" || config.comm.backward != "fp32" ||
      config.comm.dense != "fp32")
    return "comm has a codec that rounds";
  if (config.numerics.embedding_precision != "fp32")
    return "numerics.embedding_precision is not fp32";
  if (config.optimizer.max_gradient_norm > 0) return "optimizer.max_gradient_norm is set";
  return "";
}

std::string WhyNotWhole(const TrainConfig& config, const ShardMap& map) {
  const std::string of_config = WhyNotWhole(config, map.world_size());
  if (!of_config.empty()) return of_config;
  for (const size_t s : map.held()) {
    if (map.shards()[s].row_blocks.size() != map.table_of(s).row_blocks)
      return "a table is split by rows";
    if (map.columns_of(s) % 8 != 0) return "a table's columns are not a multiple of 8";
    // Row-wise Adagrad's state needs the gradients of all columns.
    if (map.table_of(s).column_blocks > 1 && config.optimizer.sparse.type == "rowwise_adagrad")
      return "a table has several column blocks";
  }
  return "";
}

bool MayComputeWholeSteps(const TrainConfig& config, int workers) {
  return config.device == "cuda" && WhyNotWhole(config, workers).empty();
}

constexpr int kMostReaders = 8;  // each has a batch in memory

std::vector<DeviceTableOptions> TablesOnDevice(const ShardMap& map,
                                               const SparseOptimizerOptions& optimizer) {
  std::vector<DeviceTableOptions> tables;
  for (const size_t s : map.held()) {
    const Shard& shard = map.shards()[s];
    tables.push_back(
        {.rows = map.rows_of(s).size(),
         .dim = map.columns_of(s),
         .state_width = StateFloatsPerRow(optimizer.type, map.columns_of(s)),
         .first_column = map.first_column(shard.table) + shard.column_block * map.columns_of(s),
         .mean = map.table_of(s).pooling == Pooling::kMean,
         .pooling_factor = map.table_of(s).pooling_factor,
         .block_begin = map.rows_of(s).first()});
  }
  return tables;
}

}  // namespace

int PoolThreads(const TrainConfig& config, int workers, int threads) {
  if (!MayComputeWholeSteps(config, workers)) return threads;
  return std::max({threads - kMostReaders, threads / 2, 1});
}

int BatchReaders(const TrainConfig& config, int workers, int pool_threads) {
  return MayComputeWholeSteps(config, workers) ? std::min(pool_threads, kMostReaders) : 1;
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

DeviceModelOptions DeviceOptionsOf(const TrainConfig& config, const ModelOptions& model,
                                   const ShardMap& map) {
  CheckDeviceSupports(model);
  const SparseOptimizerOptions sparse = SparseOptionsOf(config.optimizer.sparse);
  return {.model = model,
          .tf32 = config.numerics.precision == "tf32",
          .virtual_workers = map.virtual_workers(),
          .own_virtual_workers = map.own().size(),
          .first_virtual_worker = map.own().begin,
          .samples = map.samples_per_virtual_worker(),
          .tables = TablesOnDevice(map, sparse),
          .sparse = sparse,
          .dense = DenseOptionsOf(config.optimizer.dense)};
}

DeviceNeed DeviceNeedOf(const TrainConfig& config, const DeviceModelOptions& options,
                        const ShardMap& map, int64_t free_bytes) {
  const DeviceBytes bytes = EstimateDeviceBytes(options);
  DeviceNeed need = {.bytes = bytes.rest + bytes.tables,
                     .why_not_tables = WhyNotWhole(config, map)};
  if (need.has_tables() && need.bytes <= free_bytes) return need;
  if (need.has_tables())
    need.why_not_tables =
        fmt::format("they need {} MiB, and {} MiB are free", MebibytesOf(bytes.tables),
                    std::max<int64_t>(0, free_bytes - bytes.rest) >> 20);
  need.bytes = bytes.rest + bytes.pooled;
  return need;
}

}  // namespace renzan
