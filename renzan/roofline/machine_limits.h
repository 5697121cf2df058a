#pragma once

// What a machine can do at most, measured: the limits that a training step is compared with. All
// threads of the pool work at once, as in a step. Each rate is the median over short intervals,
// because the speed of shared machines changes from moment to moment.

#include <cstdint>
#include <span>
#include <vector>

#include "renzan/base/thread_pool.h"
#include "renzan/comm/communicator.h"
#include "renzan/tensor/precision.h"

namespace renzan {

// Floating-point operations per second of matrix products whose operands fit into the L2 cache,
// over all threads; a multiply-add counts as two.
double MeasureMatrixFlops(ThreadPool& pool, Precision precision);

// Bytes per second, read plus written, of copying arrays that are much larger than the L2 cache.
double MeasureStreamBytes(ThreadPool& pool);

// Bytes per second of reading rows of `row_bytes` (a multiple of 64) at random from a table of
// `table_bytes`.
double MeasureRandomRowBytes(ThreadPool& pool, int64_t row_bytes, int64_t table_bytes);

// The same for one short interval, in a given table [rows, row_floats]. Each call reads other rows,
// because last-level caches hold hundreds of megabytes.
class RandomRowReader {
 public:
  RandomRowReader(std::span<const float> table, int64_t row_floats);
  double BytesPerSecond(ThreadPool& pool);

 private:
  std::span<const float> table_;
  size_t row_floats_;
  uint64_t interval_ = 0;
  std::vector<std::vector<size_t>> rows_;  // for each thread, where its rows begin
};

// Seconds of an all-to-all in which every worker sends `bytes` to every other one. Every rank calls
// it.
double MeasureAllToAllSeconds(Communicator& comm, int64_t bytes);

}  // namespace renzan
