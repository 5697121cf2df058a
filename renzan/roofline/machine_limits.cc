#include "renzan/roofline/machine_limits.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/base/philox.h"
#include "renzan/nn/gemm.h"
#include "renzan/roofline/median_rate.h"

namespace renzan {
namespace {

// In [-0.5, 0.5), not zeros: products of zeros take less power, and so less time, than a model's.
std::vector<float> SomeValues(int64_t n) {
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i)
    values.push_back(Philox::Uniform(Philox::Draw(0, static_cast<uint64_t>(i))[0]) - 0.5f);
  return values;
}

}  // namespace

double MeasureMatrixFlops(ThreadPool& pool, Precision precision) {
  constexpr int64_t kRows = 128, kDepth = 256, kColumns = 192, kProducts = 400;
  struct Operands {
    explicit Operands(Precision precision)
        : a(kRows, kDepth, precision),
          b(kDepth, kColumns, precision),
          c(kRows, kColumns, precision) {
      a.SetColumns(0, SomeValues(kRows * kDepth).data(), kDepth);
      const std::vector<float> values = SomeValues(kDepth * kColumns);
      for (int64_t block = 0; block < b.num_blocks(); ++block) b.SetBlock(block, values.data());
    }
    BlockedMatrix a;
    RightOperand b;
    BlockedMatrix c;
  };
  std::vector<Operands> operands;
  for (int thread = 0; thread < pool.num_threads(); ++thread) operands.emplace_back(precision);
  return MedianRate([&] {
    pool.RunOnAll([&](int thread) {
      Operands& mine = operands[static_cast<size_t>(thread)];
      for (int64_t i = 0; i < kProducts; ++i) Gemm(mine.a, mine.b, {}, &mine.c);
    });
    return 2.0 * kRows * kDepth * kColumns * kProducts * pool.num_threads();
  });
}

double MeasureStreamBytes(ThreadPool& pool) {
  constexpr size_t kFloats = size_t{1} << 25;  // 128 MiB
  const AlignedBuffer from(kFloats);
  AlignedBuffer to(kFloats);
  return MedianRate([&] {
    pool.ParallelRanges(kFloats, [&](int, size_t begin, size_t end) {
      std::memcpy(to.data() + begin, from.data() + begin, (end - begin) * sizeof(float));
    });
    return 2.0 * kFloats * sizeof(float);
  });
}

double MeasureRandomRowBytes(ThreadPool& pool, int64_t row_bytes, int64_t table_bytes) {
  const AlignedBuffer table(static_cast<size_t>(table_bytes) / sizeof(float));
  RandomRowReader reader(table.span(), row_bytes / static_cast<int64_t>(sizeof(float)));
  std::vector<double> rates;
  for (int i = 0; i < kIntervals; ++i) rates.push_back(reader.BytesPerSecond(pool));
  return Median(std::move(rates));
}

RandomRowReader::RandomRowReader(std::span<const float> table, int64_t row_floats)
    : table_(table), row_floats_(static_cast<size_t>(row_floats)) {}

double RandomRowReader::BytesPerSecond(ThreadPool& pool) {
  constexpr size_t kRows = 100000, kLinesAhead = 32, kLine = 16;
  const size_t threads = static_cast<size_t>(pool.num_threads());
  const size_t ahead = std::max<size_t>(2, kLinesAhead * kLine / row_floats_);
  rows_.resize(threads);
  for (size_t t = 0; t < threads; ++t) {
    rows_[t].resize(kRows + ahead);
    for (size_t i = 0; i < kRows + ahead; ++i)
      rows_[t][i] =
          Philox::Draw(interval_ * threads + t, i)[0] % (table_.size() / row_floats_) * row_floats_;
  }
  ++interval_;
  std::atomic<float> total = 0;  // keeps the reads
  const double start = SystemClock().MonotonicSeconds();
  pool.RunOnAll([&](int thread) {
    const std::vector<size_t>& rows = rows_[static_cast<size_t>(thread)];
    float sum = 0;
    for (size_t i = 0; i < kRows; ++i) {
      for (size_t at = 0; at < row_floats_; at += kLine)
        __builtin_prefetch(table_.data() + rows[i + ahead] + at);
      for (size_t at = 0; at < row_floats_; at += kLine) sum += table_[rows[i] + at];
    }
    total = sum;
  });
  const double seconds = SystemClock().MonotonicSeconds() - start;
  return static_cast<double>(kRows * threads * row_floats_ * sizeof(float)) / seconds;
}

double MeasureAllToAllSeconds(Communicator& comm, int64_t bytes) {
  const size_t peers = static_cast<size_t>(comm.world_size());
  const std::vector<std::byte> out(static_cast<size_t>(bytes));
  std::vector<std::vector<std::byte>> in(peers, out);
  std::vector<std::span<const std::byte>> send(peers, out);
  std::vector<std::span<std::byte>> recv(in.begin(), in.end());
  send[static_cast<size_t>(comm.rank())] = {};
  recv[static_cast<size_t>(comm.rank())] = {};
  return 1 / MedianRate([&] {
           comm.AllToAllV(send, recv);
           return 1.0;
         });
}

}  // namespace renzan
