#include "renzan/planning/topology_file.h"

#include "renzan/base/config/config.h"

namespace renzan {
namespace {

struct TopologyFile {
  int hosts = 1, workers_per_host = 1, threads = 2;
  double memory_gib = 0, gpu_memory_gib = 0;
  double matrix_gflops, stream_gbs, rows_gbs, intra_host_gbs, inter_host_gbs, latency_us;

  explicit TopologyFile(const MachineRates& defaults)
      : matrix_gflops(defaults.matrix_flops / 1e9),
        stream_gbs(defaults.stream_bytes / 1e9),
        rows_gbs(defaults.row_bytes / 1e9),
        intra_host_gbs(defaults.intra_host_bytes / 1e9),
        inter_host_gbs(defaults.inter_host_bytes / 1e9),
        latency_us(defaults.exchange_seconds * 1e6) {}

  void Describe(ConfigFields& fields) {
    constexpr double kLeast = 1e-6, kMost = 1e9;
    fields.Range("hosts", &hosts, 1, kMostWorkers);
    fields.Range("workers_per_host", &workers_per_host, 1, kMostWorkers);
    fields.Require(hosts * workers_per_host <= kMostWorkers, "workers_per_host",
                   fmt::format("times hosts must be at most {}", kMostWorkers));
    fields.Range("threads", &threads, 1, 1024, "per worker");
    fields.Range("memory_gib", &memory_gib, 0, kMost, "per worker; 0: unlimited");
    fields.Range("gpu_memory_gib", &gpu_memory_gib, 0, kMost,
                 "of each worker's GPU, with device: cuda; 0: unknown");
    fields.Range("matrix_gflops", &matrix_gflops, kLeast, kMost, "matrix products, per worker");
    fields.Range("stream_gbs", &stream_gbs, kLeast, kMost, "arrays in order, read plus written");
    fields.Range("rows_gbs", &rows_gbs, kLeast, kMost, "embedding rows at random");
    fields.Range("intra_host_gbs", &intra_host_gbs, kLeast, kMost,
                 "exchange within a host, per worker, each way");
    fields.Range("inter_host_gbs", &inter_host_gbs, kLeast, kMost,
                 "exchange between hosts, per worker, each way");
    fields.Range("latency_us", &latency_us, 0, kMost, "of an exchange of no data");
  }
};

}  // namespace

Topology ReadTopology(const std::string& path) {
  TopologyFile file{MachineRates()};
  ReadConfigFile(path, {}, [&](ConfigFields& fields) { file.Describe(fields); });
  Topology topology;
  for (int host = 0; host < file.hosts; ++host)
    topology.hosts.push_back({host * file.workers_per_host, (host + 1) * file.workers_per_host});
  topology.rates = {.matrix_flops = file.matrix_gflops * 1e9,
                    .stream_bytes = file.stream_gbs * 1e9,
                    .row_bytes = file.rows_gbs * 1e9,
                    .intra_host_bytes = file.intra_host_gbs * 1e9,
                    .inter_host_bytes = file.inter_host_gbs * 1e9,
                    .exchange_seconds = file.latency_us * 1e-6,
                    .memory_bytes = file.memory_gib * 0x1p30,
                    .gpu_memory_bytes = file.gpu_memory_gib * 0x1p30,
                    .threads = file.threads};
  return topology;
}

}  // namespace renzan
