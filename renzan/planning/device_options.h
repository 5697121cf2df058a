#pragma once

// What a configuration and a plan mean for a worker's GPU (device: cuda), known before there is
// one.

#include <cstdint>
#include <string>

#include "renzan/cuda/device_model.h"
#include "renzan/embedding/shard_map.h"
#include "renzan/run_spec/run_spec.h"

namespace renzan {

// Of the map's own worker, with its tables. Throws kConfig for a model that no GPU can compute.
DeviceModelOptions DeviceOptionsOf(const RunSpec& spec, const ShardMap& map);

// How a worker's threads are divided where a GPU computes whole steps, which takes more batches
// than one thread reads: into a ThreadPool and readers of batches (BatchLoaderOptions::readers).
// Tables that turn out not to fit into the GPU's memory find less of a pool than they could have.
int PoolThreads(const RunSpec& spec, int workers, int threads);
int BatchReaders(const RunSpec& spec, int workers, int pool_threads);

// Of this machine's first GPU for each of so many workers, which take the GPUs in turn; 0 where
// none can be used.
int64_t FreeDeviceBytes(int workers);

// Rounded up.
int64_t MebibytesOf(int64_t bytes);

struct DeviceNeed {
  int64_t bytes = 0;           // of the GPU's memory, an estimate
  std::string why_not_tables;  // why the tables stay in the host's memory, or ""
  bool has_tables() const { return why_not_tables.empty(); }
};

// The tables are in the GPU's memory if a GPU can compute whole steps of such a run and if
// `free_bytes` suffices for them. `bytes` may be more than `free_bytes` even so.
DeviceNeed DeviceNeedOf(const RunSpec& spec, const DeviceModelOptions& options, const ShardMap& map,
                        int64_t free_bytes);

}  // namespace renzan
