#include "renzan/cuda/embedding_kernels.cuh"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "renzan/cuda/embedding_kernels_testing.h"
#include "renzan/cuda/memory.cuh"
#include "renzan/embedding/kernels.h"
#include "renzan/embedding/sort_rows.h"
#include "renzan/optim/optimizer_steps.h"
#include "renzan/tensor/precision.h"

namespace renzan::cuda {
namespace {

using namespace embedding_testing;

constexpr SparseStepOnDevice kStep = {.lr = 0.05f, .epsilon = 1e-6f, .l2 = 0, .kept = 1};
constexpr SparseStepOnDevice kDecayingStep = {
    .lr = 0.05f, .epsilon = 1e-6f, .l2 = 0.01f, .kept = 0.99f};

class EmbeddingKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasGpu()) GTEST_SKIP() << "no GPU";
  }

  // Pools, then takes a step, and compares both with the CPU.
  static void Run(const Options& options, const SparseStepOnDevice& step) {
    SCOPED_TRACE(::testing::Message()
                 << "seed " << options.seed << ", " << options.virtual_workers
                 << " virtual workers, optimizer " << static_cast<int>(options.optimizer)
                 << ", precision " << static_cast<int>(options.precision) << ", bags of "
                 << options.max_length);
    Problem problem(options);
    OnDevice device(problem);
    device.Pool();
    SortedLookups sorted(problem.shape(), problem.num_lookups());
    SparseUpdate update(problem.shape(), sorted.leaf_floats());
    device.SetStep(step);
    device.Sort(&sorted);
    device.Update(sorted, &update);
    device.stream.Synchronize();
    device.ExpectPooled();
    EXPECT_EQ(device.Finite(), problem.Update(step));
    device.ExpectUpdated();
  }
};

constexpr SparseOptimizerType kOptimizers[] = {
    SparseOptimizerType::kSgd, SparseOptimizerType::kAdagrad, SparseOptimizerType::kRowWiseAdagrad};

TEST_F(EmbeddingKernels, EqualTheCpuForEveryDimension) {
  for (const int64_t dim : {4, 8, 12, 16, 20, 32, 48, 64, 100, 128, 132, 192, 256, 320, 516}) {
    SCOPED_TRACE(dim);
    for (const SparseOptimizerType optimizer : kOptimizers) {
      for (const int max_length : {0, 5})
        Run({.tables = {{.dim = dim, .rows = 300}},
             .samples = 200,
             .virtual_workers = 4,
             .optimizer = optimizer,
             .max_length = max_length},
            kDecayingStep);
    }
  }
}

TEST_F(EmbeddingKernels, EqualTheCpuForRandomProblems) {
  const std::vector<int64_t> dims = {4, 16, 20, 64, 128, 256};
  for (uint64_t seed = 1; seed <= 48; ++seed) {
    std::mt19937_64 random(seed);
    const auto draw = [&](auto... values) {
      const std::vector<int64_t> all = {int64_t{values}...};
      return all[random() % all.size()];
    };
    Options options{.samples = draw(8, 64, 96, 1024),
                    .virtual_workers = static_cast<int>(draw(1, 4, 8)),
                    .precision = draw(0, 1) == 0 ? Precision::kFloat32 : Precision::kBFloat16,
                    .optimizer = kOptimizers[seed % 3],
                    .max_length = static_cast<int>(draw(0, 0, 2, 7, 40)),
                    .hot = draw(0, 1) == 1,
                    .seed = seed};
    const int64_t tables = draw(1, 2, 5, 9);
    for (int64_t t = 0; t < tables; ++t)
      options.tables.push_back({.dim = dims[random() % dims.size()],
                                .rows = draw(4, 33, 1000, 20000),
                                .mean = draw(0, 1) == 1,
                                .row_blocks = static_cast<int>(draw(1, 1, 4))});
    Run(options, seed % 2 == 0 ? kStep : kDecayingStep);
  }
}

TEST_F(EmbeddingKernels, EqualTheCpuForHotRows) {
  for (const int virtual_workers : {1, 4, 8, 32}) {
    for (const SparseOptimizerType optimizer : kOptimizers) {
      for (const int max_length : {0, 3})
        Run({.tables = {{.dim = 64, .rows = 1000, .mean = true},
                        {.dim = 128, .rows = 3},
                        {.dim = 20, .rows = 50},
                        {.dim = 256, .rows = 500, .mean = true}},
             .samples = 16384,
             .virtual_workers = virtual_workers,
             .precision = max_length == 0 ? Precision::kBFloat16 : Precision::kFloat32,
             .optimizer = optimizer,
             .max_length = max_length,
             .hot = true,
             .seed = 7},
            kDecayingStep);
    }
  }
}

TEST_F(EmbeddingKernels, ManyRowBlocksArePooledAsATree) {
  for (const int row_blocks : {2, 4, 64})
    Run({.tables = {{.dim = 32, .rows = 64, .mean = true, .row_blocks = row_blocks},
                    {.dim = 128, .rows = 1000, .row_blocks = row_blocks}},
         .samples = 128,
         .max_length = 60,
         .seed = 3},
        kStep);
}

// Without room for the sums of hot rows, one group of lanes handles each row.
TEST_F(EmbeddingKernels, HotRowsNeedNoRoom) {
  for (const SparseOptimizerType optimizer : kOptimizers) {
    Problem problem({.tables = {{.dim = 128, .rows = 100}, {.dim = 16, .rows = 100}},
                     .samples = 4096,
                     .virtual_workers = 8,
                     .optimizer = optimizer,
                     .hot = true});
    OnDevice device(problem);
    SortedLookups sorted(problem.shape(), problem.num_lookups(), 0);
    SparseUpdate update(problem.shape(), 0);
    device.SetStep(kStep);
    device.Sort(&sorted);
    device.Update(sorted, &update);
    device.stream.Synchronize();
    problem.Update(kStep);
    device.ExpectUpdated();
  }
}

TEST_F(EmbeddingKernels, LookupsAreSortedByRowInOrder) {
  constexpr uint32_t kWorkers = 4;
  for (const int max_length : {0, 9}) {
    Problem problem({.tables = {{.dim = 4, .rows = 50}, {.dim = 4, .rows = 70000}},
                     .samples = 5000,
                     .virtual_workers = kWorkers,
                     .max_length = max_length,
                     .hot = true});
    OnDevice device(problem);
    SortedLookups sorted(problem.shape(), problem.num_lookups() + 1000);
    device.Sort(&sorted);
    device.stream.Synchronize();
    std::vector<Lookup> expected;
    for (size_t t = 0; t < 2; ++t)
      for (int64_t s = 0; s < 5000; ++s)
        for (int32_t k = problem.Begin(t, s); k < problem.Begin(t, s + 1); ++k)
          expected.push_back(
              MakeLookup(static_cast<uint32_t>(problem.tables()[t].first_row +
                                               problem.rows()[static_cast<size_t>(k)]),
                         static_cast<uint32_t>(static_cast<int64_t>(t) * 5000 + s)));
    std::ranges::stable_sort(expected, {}, RowOf);
    std::vector<uint32_t> rows, bags;
    for (const Lookup& lookup : expected) {
      rows.push_back(RowOf(lookup));
      bags.push_back(SampleOf(lookup));
    }
    const LookupsByRow& by_row = sorted.by_row();
    EXPECT_SAME_BITS(ToHost<uint32_t>(by_row.rows, rows.size()), rows);
    EXPECT_SAME_BITS(ToHost<uint32_t>(by_row.bags, bags.size()), bags);

    std::vector<uint32_t> ones, begins, ends;
    std::vector<std::pair<uint32_t, uint32_t>> many;
    for (uint32_t begin = 0, end = 0; begin < rows.size(); begin = end) {
      while (end < rows.size() && rows[end] == rows[begin]) ++end;
      if (end - begin == 1) {
        ones.push_back(begin);
        continue;
      }
      begins.push_back(begin);
      const bool divided = end - begin > 32;
      ends.push_back(divided ? begin : end);
      if (divided) many.emplace_back(begin, end);
    }
    ASSERT_FALSE(ones.empty() || many.empty());
    const auto counts = ToHost<LookupsByRow::Counts>(by_row.counts, 1)[0];
    ASSERT_EQ(counts.ones, ones.size());
    ASSERT_EQ(counts.several, begins.size());
    ASSERT_EQ(counts.many, many.size());
    EXPECT_SAME_BITS(ToHost<uint32_t>(by_row.ones, ones.size()), ones);
    EXPECT_SAME_BITS(ToHost<uint32_t>(by_row.begins, begins.size()), begins);
    EXPECT_SAME_BITS(ToHost<uint32_t>(by_row.ends, ends.size()), ends);
    const auto leaf_begins = ToHost<uint32_t>(by_row.leaf_begins, many.size() * (kWorkers + 1));
    std::vector<std::pair<uint32_t, uint32_t>> found;
    for (const RowOfMany& row : ToHost<RowOfMany>(by_row.many, many.size())) {
      EXPECT_EQ(row.row, rows[row.begin]);
      EXPECT_EQ(row.table, bags[row.begin] / 5000);
      for (uint32_t w = 0; w <= kWorkers; ++w) {
        const uint32_t begin = leaf_begins[found.size() * (kWorkers + 1) + w];
        for (uint32_t k = row.begin; k < row.end; ++k)
          ASSERT_EQ(k >= begin, bags[k] % 5000 >= w * (5000 / kWorkers)) << k;
      }
      found.emplace_back(row.begin, row.end);
    }
    std::ranges::sort(found);
    EXPECT_EQ(found, many);
  }
}

TEST_F(EmbeddingKernels, TheSameBatchGivesTheSameBits) {
  const Options options{.tables = {{.dim = 128, .rows = 2000}, {.dim = 32, .rows = 100000}},
                        .samples = 8192,
                        .virtual_workers = 8,
                        .optimizer = SparseOptimizerType::kRowWiseAdagrad,
                        .hot = true};
  std::vector<std::vector<float>> weights[2];
  for (auto& of_run : weights) {
    Problem problem(options);
    OnDevice device(problem);
    SortedLookups sorted(problem.shape(), problem.num_lookups());
    SparseUpdate update(problem.shape(), sorted.leaf_floats());
    device.SetStep(kStep);
    for (int i = 0; i < 3; ++i) {
      device.Sort(&sorted);
      device.Update(sorted, &update);
    }
    device.stream.Synchronize();
    for (size_t t = 0; t < 2; ++t) of_run.push_back(device.Weights(t));
  }
  for (size_t t = 0; t < 2; ++t) EXPECT_SAME_BITS(weights[0][t], weights[1][t]);
}

TEST_F(EmbeddingKernels, ACapturedStepCanBeRepeated) {
  Problem problem({.tables = {{.dim = 64, .rows = 500}, {.dim = 16, .rows = 40, .mean = true}},
                   .samples = 2048,
                   .virtual_workers = 4,
                   .optimizer = SparseOptimizerType::kAdagrad,
                   .max_length = 6,
                   .hot = true});
  OnDevice device(problem);
  SortedLookups sorted(problem.shape(), problem.num_lookups());
  SparseUpdate update(problem.shape(), sorted.leaf_floats());
  const cudaStream_t stream = device.stream.get();
  // Kernels are loaded when first launched, which a capture may not allow.
  device.SetStep(kStep);
  device.Pool();
  device.Sort(&sorted);
  device.Update(sorted, &update);
  device.stream.Synchronize();
  problem.Update(kStep);
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  Check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capturing");
  device.Pool();
  device.Sort(&sorted);
  device.Update(sorted, &update);
  Check(cudaStreamEndCapture(stream, &graph), "capturing");
  Check(cudaGraphInstantiate(&executable, graph, 0), "instantiating");
  for (const SparseStepOnDevice& step : {kStep, kDecayingStep, kStep}) {
    device.SetStep(step);
    Check(cudaGraphLaunch(executable, stream), "launching");
    device.stream.Synchronize();
    device.ExpectPooled();
    EXPECT_TRUE(problem.Update(step));
    device.ExpectUpdated();
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

TEST_F(EmbeddingKernels, ValuesThatAreNotFiniteAreReported) {
  for (const bool hot : {false, true}) {
    for (const SparseOptimizerType optimizer : kOptimizers) {
      Problem problem({.tables = {{.dim = 64, .rows = 1000}},
                       .samples = 1024,
                       .optimizer = optimizer,
                       .hot = hot});
      problem.gradients()[static_cast<size_t>(problem.shape().features * 500 + 20)] =
          std::numeric_limits<float>::infinity();
      OnDevice device(problem);
      SortedLookups sorted(problem.shape(), problem.num_lookups());
      SparseUpdate update(problem.shape(), sorted.leaf_floats());
      device.SetStep(kStep);
      device.Sort(&sorted);
      device.Update(sorted, &update);
      device.stream.Synchronize();
      EXPECT_FALSE(device.Finite());
    }
  }
}

TEST_F(EmbeddingKernels, ABatchWithoutLookupsChangesNothing) {
  Problem problem({.tables = {{.dim = 64, .rows = 10}}, .samples = 8, .max_length = 1});
  OnDevice device(problem);
  SortedLookups sorted(problem.shape(), 0);
  SparseUpdate update(problem.shape(), 0);
  device.SetStep(kStep);
  DeviceLookups none = device.lookups();
  none.num_lookups = 0;
  sorted.Sort(nullptr, none, device.stream.get());
  update.Apply(nullptr, nullptr, none, sorted.by_row(), nullptr, nullptr, nullptr,
               device.stream.get());
  device.stream.Synchronize();
  const auto counts = ToHost<LookupsByRow::Counts>(sorted.by_row().counts, 1)[0];
  EXPECT_EQ(counts.ones + counts.several + counts.many, 0u);
  EXPECT_SAME_BITS(device.Weights(0), problem.tables()[0].weights);
}

}  // namespace
}  // namespace renzan::cuda
