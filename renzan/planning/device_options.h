#pragma once

// What a configuration and a plan mean for a worker's GPU (device: cuda), known before there is
// one.

#include <cstdint>
#include <string>

#include "renzan/cuda/device_model.h"
#include "renzan/embedding/shard_map.h"
#include "renzan/run_spec/run_spec.h"

namespace renzan {

// The options of the map's own worker, with its tables. Throws kConfig for a model that no GPU can
// compute.
DeviceModelOptions DeviceOptionsOf(const RunSpec& spec, const ShardMap& map);

// How a worker's threads are divided between a ThreadPool and readers of batches
// (BatchLoaderOptions::readers): a GPU that computes whole steps needs more batches than one thread
// can read. If the tables turn out not to fit into the GPU's memory, the pool is smaller than it
// could be.
int PoolThreads(const RunSpec& spec, int workers, int threads);
int BatchReaders(const RunSpec& spec, int workers, int pool_threads);

// The free memory of this machine's first GPU, divided among the workers that share it if so many
// workers take the GPUs in turn; 0 if no GPU can be used.
int64_t FreeDeviceBytes(int workers);

// Rounded up.
int64_t MebibytesOf(int64_t bytes);

struct DeviceNeed {
  int64_t bytes = 0;           // of the GPU's memory, an estimate
  std::string why_not_tables;  // why the tables stay in the host's memory, or ""
  bool has_tables() const { return why_not_tables.empty(); }
};

// The tables are in the GPU's memory if a GPU can compute whole steps of such a run and
// `free_bytes` suffices for them. Even otherwise `bytes` may exceed `free_bytes`.
DeviceNeed DeviceNeedOf(const RunSpec& spec, const DeviceModelOptions& options, const ShardMap& map,
                        int64_t free_bytes);

}  // namespace renzan
