#pragma once

// For tests of the kernels of tables: a problem, computed on the host and on the GPU.

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

#include "renzan/cuda/embedding_kernels.cuh"
#include "renzan/cuda/memory.cuh"
#include "renzan/embedding/kernels.h"
#include "renzan/embedding/sort_rows.h"
#include "renzan/optim/optimizer_steps.h"
#include "renzan/tensor/precision.h"

namespace renzan::cuda::embedding_testing {

inline bool HasGpu() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
}

template <class T>
DeviceMemory ToDevice(const std::vector<T>& values) {
  DeviceMemory memory(values.size() * sizeof(T));
  Check(cudaMemcpy(memory.as<void>(), values.data(), values.size() * sizeof(T),
                   cudaMemcpyHostToDevice),
        "copying to the GPU");
  return memory;
}

template <class T>
std::vector<T> ToHost(const void* from, size_t n) {
  std::vector<T> values(n);
  Check(cudaMemcpy(values.data(), from, n * sizeof(T), cudaMemcpyDeviceToHost),
        "copying from the GPU");
  return values;
}

// The first place where the bits differ, or -1.
template <class T>
int64_t FirstDifference(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return 0;
  for (size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0) return static_cast<int64_t>(i);
  return -1;
}

#define EXPECT_SAME_BITS(a, b) EXPECT_EQ(FirstDifference(a, b), -1)

struct HostTable {
  int64_t dim = 0, rows = 0;
  bool mean = false;
  int row_blocks = 1;
  int64_t column = 0, first_row = 0;
  std::vector<int64_t> block_begin;
  std::vector<float> weights, state;
};

struct Options {
  std::vector<HostTable> tables;  // dim, rows, mean, row_blocks
  int64_t samples = 64;
  int virtual_workers = 1;
  Precision precision = Precision::kFloat32;
  SparseOptimizerType optimizer = SparseOptimizerType::kSgd;
  int max_length = 0;  // of a bag; 0: every bag has one row and there are no offsets
  bool hot = false;    // most lookups are of few rows
  uint64_t seed = 1;
};

// A batch of all tables, on the host.
class Problem {
 public:
  explicit Problem(const Options& options) : options_(options), random_(options.seed) {
    tables_ = options.tables;
    int64_t column = 8;
    for (HostTable& table : tables_) {
      table.column = column;
      column += table.dim;
      table.first_row = total_rows_;
      total_rows_ += table.rows;
      for (int b = 0; b <= table.row_blocks; ++b)
        table.block_begin.push_back(table.rows * b / table.row_blocks);
      table.weights = Normal(table.rows * table.dim);
      table.state = Normal(table.rows * StateFloatsPerRow(options.optimizer, table.dim));
      for (float& s : table.state) s = s * s;
    }
    features_ = column + 4;
    DrawLookups();
    gradients_ = Normal(options.samples * features_);
    for (size_t i = 0; i < gradients_.size(); i += 7) gradients_[i] = -0.0f;
    if (options.precision == Precision::kBFloat16)
      for (float& g : gradients_) g = FromBFloat16(ToBFloat16(g));
  }

  EmbeddingShape shape() const {
    return {.num_tables = static_cast<int>(tables_.size()),
            .samples = options_.samples,
            .virtual_workers = options_.virtual_workers,
            .total_rows = total_rows_,
            .features = features_,
            .precision = options_.precision,
            .optimizer = options_.optimizer};
  }
  std::vector<HostTable>& tables() { return tables_; }
  const std::vector<int32_t>& rows() const { return rows_; }
  const std::vector<int32_t>& offsets() const { return offsets_; }
  std::vector<float>& gradients() { return gradients_; }  // [samples, features]
  int64_t num_lookups() const { return static_cast<int64_t>(rows_.size()); }

  // Where the bag of a sample begins; its end is that of the next sample, which may not exist.
  int32_t Begin(size_t table, int64_t sample) const {
    const int64_t t = static_cast<int64_t>(table);
    if (offsets_.empty()) return static_cast<int32_t>(t * options_.samples + sample);
    return offsets_[static_cast<size_t>(t * (options_.samples + 1) + sample)];
  }

  // The pooled rows of a table [samples, dim], by the CPU's kernels.
  std::vector<float> Pool(size_t t) {
    HostTable& table = tables_[t];
    std::vector<float> out(static_cast<size_t>(options_.samples * table.dim));
    // Row blocks take no empty bags.
    std::vector<int64_t> samples;
    std::vector<int32_t> offsets = {Begin(t, 0)};
    for (int64_t s = 0; s < options_.samples; ++s) {
      if (Begin(t, s) == Begin(t, s + 1)) continue;
      samples.push_back(s);
      offsets.push_back(Begin(t, s + 1));
    }
    std::vector<float> pooled(samples.size() * static_cast<size_t>(table.dim));
    if (table.row_blocks == 1) {
      PoolRows(Slots(&table), rows_.data(), offsets, pooled.data());
    } else {
      PoolRowBlocks(Slots(&table), table.block_begin, RowCodec::kFloat32, rows_.data(),
                    rows_.data(), offsets, pooled.data());
    }
    for (size_t i = 0; i < samples.size(); ++i) {
      float* row = pooled.data() + static_cast<int64_t>(i) * table.dim;
      const int32_t length = offsets[i + 1] - offsets[i];
      if (table.mean && length > 1) ScaleValues(1.0f / static_cast<float>(length), table.dim, row);
      std::copy_n(row, table.dim, out.data() + samples[i] * table.dim);
    }
    return out;
  }

  // One step of all tables, by the CPU's kernels.
  bool Update(const SparseStepOnDevice& step) {
    bool finite = true;
    for (size_t t = 0; t < tables_.size(); ++t) {
      HostTable& table = tables_[t];
      std::vector<float> pooled(static_cast<size_t>(options_.samples * table.dim));
      std::vector<uint16_t> virtual_worker;
      std::vector<Lookup> lookups, scratch;
      for (int64_t s = 0; s < options_.samples; ++s) {
        virtual_worker.push_back(
            static_cast<uint16_t>(s / (options_.samples / options_.virtual_workers)));
        float* g = pooled.data() + s * table.dim;
        std::copy_n(gradients_.data() + s * features_ + table.column, table.dim, g);
        const int32_t length = Begin(t, s + 1) - Begin(t, s);
        if (table.mean && length > 1) ScaleValues(1.0f / static_cast<float>(length), table.dim, g);
        for (int32_t k = Begin(t, s); k < Begin(t, s + 1); ++k)
          lookups.push_back(MakeLookup(static_cast<uint32_t>(rows_[static_cast<size_t>(k)]),
                                       static_cast<uint32_t>(s)));
      }
      ClearNegativeZeros(static_cast<int64_t>(pooled.size()), pooled.data());
      SortByRow(&lookups, &scratch, table.rows);
      if (lookups.empty()) continue;
      finite &= UpdateRows(
          {.optimizer = {options_.optimizer, step.lr, step.epsilon},
           .l2 = step.l2,
           .kept = step.kept},
          {.lookups = lookups, .pooled = pooled.data(), .virtual_worker = virtual_worker.data()},
          Slots(&table));
    }
    return finite;
  }

 private:
  std::vector<float> Normal(int64_t n) {
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<size_t>(n));
    for (float& v : values) v = normal(random_);
    return values;
  }

  static RowSlots Slots(HostTable* table) {
    return {.dim = table->dim,
            .weights = reinterpret_cast<std::byte*>(table->weights.data()),
            .state = table->state.data()};
  }

  int32_t DrawRow(const HostTable& table) {
    std::uniform_real_distribution<double> uniform;
    const double u = uniform(random_);
    if (!options_.hot) return static_cast<int32_t>(u * static_cast<double>(table.rows));
    if (u < 0.3) return static_cast<int32_t>(table.rows / 2);
    const double power = std::pow(static_cast<double>(table.rows), uniform(random_));
    return static_cast<int32_t>(std::min(power, static_cast<double>(table.rows)) - 1);
  }

  void DrawLookups() {
    std::uniform_int_distribution<int> length(0, options_.max_length);
    for (const HostTable& table : tables_) {
      for (int64_t s = 0; s < options_.samples; ++s) {
        const int n = options_.max_length == 0 ? 1 : length(random_);
        if (options_.max_length > 0) offsets_.push_back(static_cast<int32_t>(rows_.size()));
        std::vector<int32_t> bag;
        for (int i = 0; i < n; ++i) bag.push_back(DrawRow(table));
        std::ranges::stable_sort(bag, {}, [&](int32_t row) {
          return std::ranges::upper_bound(table.block_begin, int64_t{row}) -
                 table.block_begin.begin();
        });
        rows_.insert(rows_.end(), bag.begin(), bag.end());
      }
      if (options_.max_length > 0) offsets_.push_back(static_cast<int32_t>(rows_.size()));
    }
  }

  Options options_;
  std::mt19937_64 random_;
  std::vector<HostTable> tables_;
  int64_t total_rows_ = 0, features_ = 0;
  std::vector<int32_t> rows_, offsets_;
  std::vector<float> gradients_;
};

// The same on the device.
class OnDevice {
 public:
  explicit OnDevice(Problem& problem)
      : problem_(problem),
        shape_(problem.shape()),
        rows_(ToDevice(problem.rows())),
        offsets_(ToDevice(problem.offsets())),
        step_(sizeof(SparseStepOnDevice)),
        touched_(Words() * sizeof(uint32_t)),
        finite_(ToDevice(std::vector<int32_t>{1})) {
    std::vector<DeviceTable> tables;
    for (const HostTable& table : problem.tables()) {
      weights_.push_back(ToDevice(table.weights));
      state_.push_back(ToDevice(table.state));
      blocks_.push_back(ToDevice(table.block_begin));
      tables.push_back({.weights = weights_.back().as<float>(),
                        .state = state_.back().as<float>(),
                        .dim = static_cast<int32_t>(table.dim),
                        .column = static_cast<int32_t>(table.column),
                        .first_row = table.first_row,
                        .mean = table.mean,
                        .num_blocks = table.row_blocks,
                        .block_begin = blocks_.back().as<int64_t>()});
    }
    tables_ = ToDevice(tables);
    if (bfloat16()) {
      features_ = ToDevice(std::vector<uint16_t>(Values(), kUntouched));
      std::vector<uint16_t> gradients;
      for (const float g : problem.gradients()) gradients.push_back(ToBFloat16(g));
      gradients_ = ToDevice(gradients);
    } else {
      features_ = ToDevice(std::vector<float>(Values(), FromBFloat16(kUntouched)));
      gradients_ = ToDevice(problem.gradients());
    }
    Check(cudaDeviceSynchronize(), "copying to the GPU");  // the stream does not wait for it
  }

  DeviceLookups lookups() const {
    return {.rows = rows_.as<int32_t>(),
            .offsets = problem_.offsets().empty() ? nullptr : offsets_.as<int32_t>(),
            .num_lookups = problem_.num_lookups()};
  }
  void Pool() {
    PoolFeatures(shape_, tables_.as<DeviceTable>(), lookups(), features_.as<void>(), stream.get());
  }
  void Sort(SortedLookups* sorted) {
    sorted->Sort(tables_.as<DeviceTable>(), lookups(), stream.get());
  }
  void Update(const SortedLookups& sorted, SparseUpdate* update) {
    update->Apply(step_.as<SparseStepOnDevice>(), tables_.as<DeviceTable>(), lookups(),
                  sorted.by_row(), gradients_.as<void>(), touched_.as<uint32_t>(),
                  finite_.as<int32_t>(), stream.get());
  }
  void SetStep(const SparseStepOnDevice& step) {
    CopyToDevice(&step, sizeof(step), step_.as<void>(), stream);
    stream.Synchronize();
  }

  std::vector<float> Weights(size_t t) const {
    return ToHost<float>(weights_[t].as<void>(), problem_.tables()[t].weights.size());
  }
  std::vector<float> State(size_t t) const {
    return ToHost<float>(state_[t].as<void>(), problem_.tables()[t].state.size());
  }
  std::vector<uint32_t> Touched() const { return ToHost<uint32_t>(touched_.as<void>(), Words()); }
  bool Finite() const { return ToHost<int32_t>(finite_.as<void>(), 1)[0] != 0; }

  void ExpectPooled() {
    std::vector<float> expected(Values(), FromBFloat16(kUntouched));
    for (size_t t = 0; t < problem_.tables().size(); ++t) {
      const HostTable& table = problem_.tables()[t];
      const std::vector<float> pooled = problem_.Pool(t);
      for (int64_t s = 0; s < shape_.samples; ++s)
        std::copy_n(pooled.data() + s * table.dim, table.dim,
                    expected.data() + s * shape_.features + table.column);
    }
    if (bfloat16()) {
      std::vector<uint16_t> rounded;
      for (const float value : expected) rounded.push_back(ToBFloat16(value));
      EXPECT_SAME_BITS(ToHost<uint16_t>(features_.as<void>(), Values()), rounded);
    } else {
      EXPECT_SAME_BITS(ToHost<float>(features_.as<void>(), Values()), expected);
    }
  }
  void ExpectUpdated() {
    for (size_t t = 0; t < problem_.tables().size(); ++t) {
      EXPECT_SAME_BITS(Weights(t), problem_.tables()[t].weights) << "table " << t;
      EXPECT_SAME_BITS(State(t), problem_.tables()[t].state) << "table " << t;
    }
    std::vector<uint32_t> touched(Words());
    for (size_t t = 0; t < problem_.tables().size(); ++t) {
      for (int32_t k = problem_.Begin(t, 0); k < problem_.Begin(t, shape_.samples); ++k) {
        const int64_t row =
            problem_.tables()[t].first_row + problem_.rows()[static_cast<size_t>(k)];
        touched[static_cast<size_t>(row / 32)] |= 1u << row % 32;
      }
    }
    EXPECT_SAME_BITS(Touched(), touched);
  }

  Stream stream;

 private:
  static constexpr uint16_t kUntouched = 0x4321;

  bool bfloat16() const { return shape_.precision == Precision::kBFloat16; }
  size_t Values() const { return static_cast<size_t>(shape_.samples * shape_.features); }
  size_t Words() const { return static_cast<size_t>((shape_.total_rows + 31) / 32); }

  Problem& problem_;
  EmbeddingShape shape_;
  DeviceMemory rows_, offsets_, step_, touched_, finite_, tables_, features_, gradients_;
  std::vector<DeviceMemory> weights_, state_, blocks_;
};

}  // namespace renzan::cuda::embedding_testing
