#include <cstddef>
#include <cstdint>

#include "renzan/cuda/row_step.cuh"
#include "renzan/cuda/rows_of_many.cuh"
#include "renzan/cuda/values.cuh"

namespace renzan::cuda {
namespace {

constexpr int kThreads = 128;  // per block
constexpr int kWarps = kThreads / kWarp;
constexpr int kLeavesAtOnce = 8;   // a power of two
constexpr int kWorkerLevels = 10;  // 2^10 virtual workers

// A lane sums two columns of a leaf. Each addition waits for the one before it, so the operands of
// many lookups ahead are loaded meanwhile.
constexpr int kColumnsOfLane = 2;
constexpr int kColumnsOfWarp = kColumnsOfLane * kWarp;
constexpr uint32_t kSlices = 2;     // tasks per leaf, each with every other kColumnsOfWarp columns
constexpr uint32_t kTogether = 16;  // lookups that are waited for together
constexpr uint32_t kAhead = 4;      // such groups in flight
constexpr uint32_t kRing = kTogether * kAhead;
constexpr uint32_t kFar = 8 * kWarp;  // gradients so many lookups ahead are prefetched into L2
// Factors are computed for kWarp lookups at a time and used later, so several such groups are kept.
constexpr uint32_t kFactors = 4 * kWarp;

template <class Value>
struct alignas(kColumnsOfLane * sizeof(Value)) LaneValues {
  Value at[kColumnsOfLane];
};

template <class Value>
struct WarpMemory {
  LaneValues<Value> ring[kRing][kWarp];
  float factors[kFactors];
};

template <int kBytes>
__device__ void CopyAsync(const void* from, void* to_shared) {
  const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(to_shared));
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(kBytes)
               : "memory");
}
__device__ void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending>
__device__ void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// A task: some columns of a leaf.
template <class Value>
struct LeafColumns {
  const Value* first;    // the first of the task's columns in the gradient of the table's sample 0
  const Value* from;     // the first of this lane's columns there
  int num_columns;       // from `first` on
  uint32_t stride;       // from one sample to the next, in values
  const uint32_t* bags;  // of the leaf's lookups
  uint32_t num_lookups;
  uint32_t first_bag;      // of the table
  const int32_t* offsets;  // of the table's bags, for a mean; otherwise null

  __device__ float2 Sum(WarpMemory<Value>* memory) const {
    const uint32_t lane = threadIdx.x % kWarp;
    const auto bag_of_lane = [&](uint32_t k) {
      return __ldg(bags + min(k + lane, num_lookups - 1)) - first_bag;
    };
    float2 sum = {0, 0};
    uint32_t bag = 0, next = bag_of_lane(0), far = bag_of_lane(kFar);
    const auto prefetch = [&](uint32_t sample) {
      constexpr int kLine = 128 / sizeof(Value);
#pragma unroll
      for (int column = 0; column < kColumnsOfWarp; column += kLine)
        if (column < num_columns) Prefetch(first + uint64_t{sample} * stride + column);
    };
    const auto copy = [&](uint32_t k, uint32_t u) {
      const uint32_t sample = __shfl_sync(kAllLanes, bag, static_cast<int>(k % kWarp + u));
      CopyAsync<sizeof(LaneValues<Value>)>(from + uint64_t{sample} * stride,
                                           &memory->ring[k % kRing + u][lane]);
    };
    const auto add = [&](uint32_t k, uint32_t u) {
      const LaneValues<Value> x = memory->ring[k % kRing + u][lane];
      float a = ToFloat(x.at[0]), b = ToFloat(x.at[1]);
      if (offsets != nullptr) {
        const float factor = memory->factors[k % kFactors + u];
        a = __fmul_rn(factor, a);
        b = __fmul_rn(factor, b);
      }
      sum = {__fadd_rn(sum.x, a), __fadd_rn(sum.y, b)};
    };
    // Calls body(k, u) for the lookups k + u of a group. Only the last group may be partial.
    const auto for_group = [&](uint32_t k, const auto& body) {
      if (k + kTogether <= num_lookups) {
#pragma unroll
        for (uint32_t u = 0; u < kTogether; ++u) body(k, u);
      } else {
#pragma unroll 1
        for (uint32_t u = 0; k + u < num_lookups; ++u) body(k, u);
      }
    };
    constexpr uint32_t kLag = kRing - kTogether;
#pragma unroll 1
    for (uint32_t k = 0; k < num_lookups + kLag; k += kTogether) {
      if (k < num_lookups) {
        if (k % kWarp == 0) {
          bag = next;
          next = bag_of_lane(k + kWarp);
          if (k + kFar < num_lookups) {
            prefetch(far);
            far = bag_of_lane(k + kFar + kWarp);
          }
          if (offsets != nullptr) {
            memory->factors[k % kFactors + lane] = MeanFactor(offsets, bag);
            __syncwarp();
          }
        }
        for_group(k, copy);
      }
      CommitCopies();
      if (k < kLag) continue;
      WaitForCopies<kAhead - 1>();
      for_group(k - kLag, add);
    }
    __syncwarp();  // before factors are overwritten
    return sum;
  }
};

// A leaf without lookups becomes zeros, which take part in the sum like any other.
template <class Value>
__global__ void __launch_bounds__(kThreads) SumLeaves(const __grid_constant__ UpdateArguments a) {
  extern __shared__ __align__(16) std::byte shared[];
  WarpMemory<Value>* const memory =
      reinterpret_cast<WarpMemory<Value>*>(shared) + threadIdx.x / kWarp;
  const uint32_t tasks = a.by_row.counts->many * a.workers * kSlices, lane = threadIdx.x % kWarp;
  uint32_t turn = 0;
#pragma unroll 1
  for (uint32_t task = blockIdx.x * kWarps + threadIdx.x / kWarp; task < tasks;
       task += gridDim.x * kWarps, ++turn) {
    // Short rows have no second slice, so each warp alternates between both kinds.
    const uint32_t slice = (task + turn) % kSlices;
    const uint32_t leaf = task / kSlices, worker = leaf % a.workers;
    const RowOfMany row = a.by_row.many[leaf / a.workers];
    const uint32_t* begins = a.by_row.leaf_begins + leaf / a.workers * (a.workers + 1) + worker;
    const uint32_t begin = begins[0], end = begins[1];
    const DeviceTable& table = a.tables[row.table];
    const bool mean = table.mean != 0 && a.offsets != nullptr;
#pragma unroll 1
    for (int first = static_cast<int>(slice) * kColumnsOfWarp; first < table.dim;
         first += static_cast<int>(kSlices) * kColumnsOfWarp) {
      // Lanes beyond the end of the row repeat its last columns.
      const int column =
          min(first + kColumnsOfLane * static_cast<int>(lane), table.dim - kColumnsOfLane);
      const Value* const of_table = static_cast<const Value*>(a.d_features) + table.column;
      const LeafColumns<Value> columns{
          .first = of_table + first,
          .from = of_table + column,
          .num_columns = table.dim - first,
          .stride = a.stride,
          .bags = a.by_row.bags + begin,
          .num_lookups = end - begin,
          .first_bag = row.table * a.samples,
          .offsets = mean ? a.offsets + row.table * (int64_t{a.samples} + 1) : nullptr};
      const float2 sum = begin < end ? columns.Sum(memory) : float2{0, 0};
      *reinterpret_cast<float2*>(a.leaves + row.leaves + uint64_t{worker} * table.dim + column) =
          sum;
    }
  }
}

// The gradient of a row from the sums of all virtual workers.
struct LeavesGradient {
  static constexpr bool kOfSeveral = true;
  const float* leaves;  // [workers, dim]
  int workers;          // a power of two
  int dim;

  template <int kVectors>
  __device__ void Load(const LaneColumns<kVectors>& columns, bool, float4 (&sum)[kVectors]) const {
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
      sum[v] = columns.there[v] ? OfColumns(columns.column[v]) : Zeros();
  }
  template <int kVectors>
  __device__ void Finish(float4 (&)[kVectors]) const {}

 private:
  __device__ float4 OfColumns(int column) const {
    TreeSum<1, kWorkerLevels> tree;
    float4 sum[1];
#pragma unroll 1
    for (int first = 0; first < workers; first += kLeavesAtOnce) {
      if (first > 0) tree.Push(first / kLeavesAtOnce - 1, first / kLeavesAtOnce, sum);
      float4 x[kLeavesAtOnce];
#pragma unroll
      for (int u = 0; u < kLeavesAtOnce; ++u)
        x[u] = first + u < workers ? LoadFour(leaves + int64_t{first + u} * dim + column) : Zeros();
#pragma unroll
      for (int distance = 1; distance < kLeavesAtOnce; distance *= 2)
#pragma unroll
        for (int u = 0; u < kLeavesAtOnce; u += 2 * distance) x[u] = Add(x[u], x[u + distance]);
      sum[0] = x[0];
    }
    tree.Finish(sum);
    return sum[0];
  }
};

template <SparseOptimizerType kType>
__global__ void __launch_bounds__(kThreads) FinishRows(const __grid_constant__ UpdateArguments a) {
  const SparseStepOnDevice step = *a.step;
  const uint32_t count = a.by_row.counts->many;
  float finite = 0;
#pragma unroll 1
  for (uint32_t i = blockIdx.x * kWarps + threadIdx.x / kWarp; i < count; i += gridDim.x * kWarps) {
    const RowOfMany row = a.by_row.many[i];
    const DeviceTable& table = a.tables[row.table];
    const TableRow rows[1] = {RowOfTable<kType>(table, row.row, true)};
    const LeavesGradient gradient[1] = {
        {a.leaves + row.leaves, static_cast<int>(a.workers), table.dim}};
    finite += table.dim <= 4 * kWarp
                  ? StepRows<kType, 1, 1>(step, table.dim, kWarp, rows, gradient)
                  : StepRows<kType, 2, 1>(step, table.dim, kWarp, rows, gradient);
    if (threadIdx.x % kWarp == 0) atomicOr(a.touched + row.row / 32, 1u << row.row % 32);
  }
  ReportFinite(finite, a.finite);
}

template <class Value>
void LaunchSum(const UpdateArguments& a, int multiprocessors, cudaStream_t stream) {
  constexpr int kBytes = kWarps * static_cast<int>(sizeof(WarpMemory<Value>));
  Check(cudaFuncSetAttribute(SumLeaves<Value>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
        "summing the gradients of embedding rows");
  SumLeaves<Value><<<static_cast<unsigned>(3 * multiprocessors), kThreads, kBytes, stream>>>(a);
  CheckLaunch("summing the gradients of embedding rows");
}

}  // namespace

void UpdateRowsOfMany(const UpdateArguments& arguments, SparseOptimizerType optimizer,
                      Precision precision, int multiprocessors, cudaStream_t stream) {
  if (precision == Precision::kFloat32) {
    LaunchSum<float>(arguments, multiprocessors, stream);
  } else {
    LaunchSum<__nv_bfloat16>(arguments, multiprocessors, stream);
  }
  const auto finish = [&](auto kernel) {
    kernel<<<static_cast<unsigned>(2 * multiprocessors), kThreads, 0, stream>>>(arguments);
  };
  switch (optimizer) {
    case SparseOptimizerType::kSgd:
      finish(FinishRows<SparseOptimizerType::kSgd>);
      break;
    case SparseOptimizerType::kAdagrad:
      finish(FinishRows<SparseOptimizerType::kAdagrad>);
      break;
    case SparseOptimizerType::kRowWiseAdagrad:
      finish(FinishRows<SparseOptimizerType::kRowWiseAdagrad>);
      break;
    case SparseOptimizerType::kAdam:
    case SparseOptimizerType::kMomentum:
    case SparseOptimizerType::kFtrl:
      break;  // CheckDeviceSupports() refuses them
  }
  CheckLaunch("updating embedding rows of many lookups");
}

}  // namespace renzan::cuda
