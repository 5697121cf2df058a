#include "renzan/planning/topology_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan {
namespace {

Topology TopologyFrom(const std::string& text) {
  TemporaryDirectory dir;
  WriteFileAtomically(dir / "topology.yaml", text);
  return ReadTopology(dir / "topology.yaml");
}

TEST(ReadTopology, HostsAndRates) {
  const Topology topology = TopologyFrom(
      "hosts: 3\nworkers_per_host: 2\nmemory_gib: 40\nmatrix_gflops: 10000\nlatency_us: 5\n"
      "inter_host_gbs: 12.5\nthreads: 8\ngpu_memory_gib: 80\n");
  EXPECT_EQ(topology.hosts, (std::vector<IndexRange>{{0, 2}, {2, 4}, {4, 6}}));
  EXPECT_EQ(topology.workers(), 6);
  EXPECT_EQ(topology.rates.memory_bytes, 40 * 0x1p30);
  EXPECT_EQ(topology.rates.gpu_memory_bytes, 80 * 0x1p30);
  EXPECT_EQ(topology.rates.matrix_flops, 1e13);
  EXPECT_EQ(topology.rates.inter_host_bytes, 12.5e9);
  EXPECT_DOUBLE_EQ(topology.rates.exchange_seconds, 5e-6);
  EXPECT_EQ(topology.rates.threads, 8);
  EXPECT_DOUBLE_EQ(topology.rates.row_bytes, MachineRates().row_bytes);
}

TEST(ReadTopology, NamesWhatMakesNoSense) {
  const auto expect = [](const std::string& text, const char* message) {
    try {
      TopologyFrom(text);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig) << text;
      EXPECT_THAT(error.what(), testing::HasSubstr(message)) << text;
    }
  };
  expect("hosts: 0\n", "hosts");
  expect("hosts: -1\n", "hosts");
  expect("hosts: two\n", "hosts");
  expect("hosts: 64\nworkers_per_host: 32\n", "times hosts must be at most 1024");
  expect("threads: 0\n", "threads");
  expect("memory_gib: -1\n", "memory_gib");
  expect("gpu_memory_gib: -1\n", "gpu_memory_gib");
  expect("matrix_gflops: 0\n", "matrix_gflops");
  expect("rows_gbs: -5\n", "rows_gbs");
  expect("stream_gbs: .nan\n", "stream_gbs");
  expect("inter_host_gbs: .inf\n", "inter_host_gbs");
  expect("latency_us: -1\n", "latency_us");
  expect("host: 2\n", "did you mean 'hosts'?");
  TemporaryDirectory dir;
  try {
    ReadTopology(dir / "nowhere.yaml");
    ADD_FAILURE() << "read a missing file";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNoInput);
  }
}

}  // namespace
}  // namespace renzan
