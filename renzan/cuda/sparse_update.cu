#include <algorithm>
#include <cstdint>

#include "renzan/cuda/embedding_kernels.cuh"
#include "renzan/cuda/row_step.cuh"
#include "renzan/cuda/rows_of_many.cuh"

namespace renzan::cuda {
namespace {

constexpr int kThreads = 256;                    // per block
constexpr int kBlocks = 2;                       // per multiprocessor: more would spill registers
constexpr int64_t kMinRowsOfWarp = 8;            // whose positions a warp loads together
constexpr int64_t kItemsOfMultiprocessor = 128;  // at least so many loads of positions
constexpr int kVectorsAtOnce = 4;                // loads of gradients in flight per lane
constexpr int kWorkerLevels = 10;                // 2^10 virtual workers

// Where a table's rows get their gradients from.
template <class Value>
struct TableGradients {
  const UpdateArguments& a;
  const Value* from;  // the table's columns of sample 0
  uint32_t table;
  bool mean;
};

template <class Value>
__device__ TableGradients<Value> GradientsOf(const UpdateArguments& a, uint32_t table) {
  const DeviceTable& of = a.tables[table];
  return {a, static_cast<const Value*>(a.d_features) + of.column, table,
          of.mean != 0 && a.offsets != nullptr};
}

// Sets the bits of the lanes' rows; neighbouring rows share words.
__device__ void TouchRows(uint32_t* touched, uint32_t row, bool chosen) {
  const uint32_t lanes = __ballot_sync(kAllLanes, chosen);
  if (!chosen) return;
  const uint32_t same = __match_any_sync(lanes, row / 32);
  const uint32_t bits = __reduce_or_sync(same, 1u << row % 32);
  if (threadIdx.x % kWarp == __ffs(same) - 1) atomicOr(touched + row / 32, bits);
}

// ---- Rows with one lookup.

template <class Value>
struct LookupGradient {
  static constexpr bool kOfSeveral = false;
  const TableGradients<Value>& of;
  uint32_t bag;

  template <int kVectors>
  __device__ void Load(const LaneColumns<kVectors>& columns, bool there,
                       float4 (&g)[kVectors]) const {
    const Value* from = of.from + uint64_t{bag - of.table * of.a.samples} * of.a.stride;
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
      g[v] = there && columns.there[v] ? LoadFour(from + columns.column[v]) : Zeros();
  }
  // -0 becomes +0, as in a sum that starts with +0.
  template <int kVectors>
  __device__ void Finish(float4 (&g)[kVectors]) const {
    if (of.mean) {
      const float factor = MeanFactor(of.a.offsets, bag + of.table);
#pragma unroll
      for (int v = 0; v < kVectors; ++v) g[v] = Scale(factor, g[v]);
    }
#pragma unroll
    for (int v = 0; v < kVectors; ++v) g[v] = Add(g[v], Zeros());
  }
};

// Updates the rows of lanes [begin, end), all of table `t`, several per group at a time.
template <SparseOptimizerType kType, int kVectors, class Value>
__device__ float UpdateOnes(const UpdateArguments& a, const SparseStepOnDevice& step, uint32_t row,
                            uint32_t bag, uint32_t t, int begin, int end) {
  constexpr int kRows = kVectorsAtOnce / kVectors;
  const DeviceTable& table = a.tables[t];
  const TableGradients<Value> gradients = GradientsOf<Value>(a, t);
  const int dim = table.dim, lanes = kVectors > 1 ? kWarp : LanesOfStep(dim);
  const int groups = kWarp / lanes, group = threadIdx.x % kWarp / lanes;
  float finite = 0;
#pragma unroll 1
  for (int k = begin; k < end; k += kRows * groups) {
    TableRow rows[kRows];
    uint32_t bags[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int from = k + r * groups + group;
      rows[r] = RowOfTable<kType>(table, __shfl_sync(kAllLanes, row, from), from < end);
      bags[r] = __shfl_sync(kAllLanes, bag, from);
    }
    if constexpr (kRows == 4) {
      const LookupGradient<Value> of_rows[kRows] = {
          {gradients, bags[0]}, {gradients, bags[1]}, {gradients, bags[2]}, {gradients, bags[3]}};
      finite += StepRows<kType, kVectors>(step, dim, lanes, rows, of_rows);
    } else {
      const LookupGradient<Value> of_rows[kRows] = {{gradients, bags[0]}, {gradients, bags[1]}};
      finite += StepRows<kType, kVectors>(step, dim, lanes, rows, of_rows);
    }
  }
  return finite;
}

template <SparseOptimizerType kType, class Value>
__global__ void __launch_bounds__(kThreads, kBlocks)
    UpdateRowsOfOne(const __grid_constant__ UpdateArguments a) {
  const SparseStepOnDevice step = *a.step;
  const uint32_t num_rows = a.by_row.counts->ones, lane = threadIdx.x % kWarp;
  const uint32_t stride = gridDim.x * (kThreads / kWarp) * a.rows_of_warp;
  const auto is_there = [&](uint32_t first) {
    return lane < a.rows_of_warp && first + lane < num_rows;
  };
  const auto lookup_at = [&](uint32_t first) {
    return is_there(first) ? a.by_row.ones[first + lane] : 0;
  };
  // While rows are updated, the next rows' positions, and the indices of the rows after them, are
  // being loaded.
  uint32_t first = (blockIdx.x * kThreads + threadIdx.x) / kWarp * a.rows_of_warp;
  const uint32_t lookup = lookup_at(first);
  uint32_t row = a.by_row.rows[lookup], bag = a.by_row.bags[lookup];
  uint32_t next_lookup = lookup_at(first + stride);
  float finite = 0;
#pragma unroll 1
  for (; first < num_rows; first += stride) {
    const uint32_t next_row = a.by_row.rows[next_lookup], next_bag = a.by_row.bags[next_lookup];
    next_lookup = lookup_at(first + 2 * stride);
    const bool there = is_there(first);
    const uint32_t table = bag / a.samples;
    TouchRows(a.touched, row, there);
    uint32_t rest = __ballot_sync(kAllLanes, there);
#pragma unroll 1
    while (rest != 0) {  // neighbours mostly belong to one table
      const int begin = __ffs(rest) - 1;
      const uint32_t t = __shfl_sync(kAllLanes, table, begin);
      const uint32_t mask = __ballot_sync(kAllLanes, there && table == t);
      const int end = begin + __popc(mask);
      finite += a.tables[t].dim <= 4 * kWarp
                    ? UpdateOnes<kType, 1, Value>(a, step, row, bag, t, begin, end)
                    : UpdateOnes<kType, 2, Value>(a, step, row, bag, t, begin, end);
      rest &= ~mask;
    }
    row = next_row;
    bag = next_bag;
  }
  ReportFinite(finite, a.finite);
}

// ---- Rows with several lookups.

// What a lane knows about a row.
struct RowPlace {
  uint32_t row = 0, table = 0;
  uint32_t begin = 0, count = 0;  // its lookups
};

// The gradient of a row with several lookups.
template <class Value>
struct LookupsGradient {
  static constexpr bool kOfSeveral = true;
  TableGradients<Value> of;
  RowPlace place;

  template <int kVectors>
  __device__ void Load(const LaneColumns<kVectors>& columns, bool, float4 (&sum)[kVectors]) const {
    constexpr uint32_t kAtOnce = kVectorsAtOnce / kVectors;
    TreeSum<kVectors, kWorkerLevels> tree;
    const auto clear = [&] {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) sum[v] = Zeros();
    };
    const uint32_t* bags = of.a.by_row.bags + place.begin;
    uint32_t worker = 0, end_of_worker = 0;  // of the samples
    clear();
#pragma unroll 1
    for (uint32_t k = 0; k < place.count; k += kAtOnce) {
      uint32_t sample[kAtOnce];
      float factor[kAtOnce];
      float4 x[kAtOnce][kVectors];
#pragma unroll
      for (uint32_t u = 0; u < kAtOnce; ++u)
        if (k + u < place.count) sample[u] = __ldg(bags + k + u) - of.table * of.a.samples;
#pragma unroll
      for (uint32_t u = 0; u < kAtOnce; ++u) {
        if (k + u >= place.count) continue;
        const Value* from = of.from + uint64_t{sample[u]} * of.a.stride;
#pragma unroll
        for (int v = 0; v < kVectors; ++v)
          x[u][v] = columns.there[v] ? LoadFour(from + columns.column[v]) : Zeros();
        if (of.mean)
          factor[u] = MeanFactor(of.a.offsets, of.table * (of.a.samples + 1) + sample[u]);
      }
#pragma unroll
      for (uint32_t u = 0; u < kAtOnce; ++u) {
        if (k + u >= place.count) continue;
        if (sample[u] >= end_of_worker) {
          const uint32_t next = sample[u] / of.a.samples_of_worker;
          if (k + u > 0) tree.Push(worker, next, sum);
          worker = next;
          end_of_worker = (next + 1) * of.a.samples_of_worker;
          clear();
        }
        // A sum that starts with +0 is never -0.
#pragma unroll
        for (int v = 0; v < kVectors; ++v)
          sum[v] = Add(sum[v], of.mean ? Scale(factor[u], x[u][v]) : x[u][v]);
      }
    }
    tree.Finish(sum);
  }
  template <int kVectors>
  __device__ void Finish(float4 (&)[kVectors]) const {}
};

__device__ RowPlace PlaceOfLane(const RowPlace& place, int lane) {
  const auto get = [&](uint32_t value) { return __shfl_sync(kAllLanes, value, lane); };
  return {get(place.row), get(place.table), get(place.begin), get(place.count)};
}

// Prefetches a row that is updated next, and the gradients of its lookups.
template <SparseOptimizerType kType, int kVectors, class Value>
__device__ void PrefetchRow(const TableGradients<Value>& of, int dim, int lanes,
                            const TableRow& row, const RowPlace& place) {
  const int lane = threadIdx.x & (lanes - 1);
  if (kType == SparseOptimizerType::kRowWiseAdagrad && lane == 0) Prefetch(row.state);
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int column = 4 * (v * lanes + lane);
    if (column >= dim) continue;
    Prefetch(row.weights + column);
    if (kType == SparseOptimizerType::kAdagrad) Prefetch(row.state + column);
  }
  constexpr int kLine = 128 / sizeof(Value);
  for (uint32_t k = lane; k < place.count; k += lanes) {
    const uint32_t bag = __ldg(of.a.by_row.bags + place.begin + k);
    const Value* from = of.from + uint64_t{bag - of.table * of.a.samples} * of.a.stride;
    for (int column = 0; column < dim; column += kLine) Prefetch(from + column);
  }
}

// Updates the rows of the lanes in `mask`, all of table `t`.
template <SparseOptimizerType kType, int kVectors, class Value>
__device__ float UpdateSeveral(const UpdateArguments& a, const SparseStepOnDevice& step,
                               const RowPlace& place, uint32_t t, uint32_t mask) {
  const DeviceTable& table = a.tables[t];
  const TableGradients<Value> gradients = GradientsOf<Value>(a, t);
  const int dim = table.dim, lanes = kVectors > 1 ? kWarp : LanesOfStep(dim);
  const int lane = threadIdx.x % kWarp;
  struct Turn {
    RowPlace place;
    bool there;
  };
  // When no row is left for a group, it gets another group's row, without lookups.
  const auto take = [&] {
    int from = __ffs(mask) - 1;
    bool there = true;
#pragma unroll 1
    for (int first = 0; first < kWarp; first += lanes) {
      if (lane >= first) {
        there = mask != 0;
        if (there) from = __ffs(mask) - 1;
      }
      mask &= mask - 1;
    }
    Turn turn = {PlaceOfLane(place, from), there};
    if (!there) turn.place.count = 0;
    return turn;
  };
  float finite = 0;
  Turn turn = take();
#pragma unroll 1
  for (bool more = true; more;) {
    more = mask != 0;
    Turn next = turn;
    if (more) {
      next = take();
      // Two rows are in flight: a single one would leave the memory idle.
      if (next.there)
        PrefetchRow<kType, kVectors>(gradients, dim, lanes,
                                     RowOfTable<kType>(table, next.place.row, true), next.place);
    }
    const TableRow rows[1] = {RowOfTable<kType>(table, turn.place.row, turn.there)};
    const LookupsGradient<Value> of_rows[1] = {{gradients, turn.place}};
    finite += StepRows<kType, kVectors>(step, dim, lanes, rows, of_rows);
    turn = next;
  }
  return finite;
}

template <SparseOptimizerType kType, class Value>
__global__ void __launch_bounds__(kThreads, kBlocks)
    UpdateRowsOfSeveral(const __grid_constant__ UpdateArguments a) {
  const SparseStepOnDevice step = *a.step;
  const uint32_t num_rows = a.by_row.counts->several, lane = threadIdx.x % kWarp;
  const uint32_t stride = gridDim.x * (kThreads / kWarp) * a.rows_of_warp;
  const auto lookups_at = [&](uint32_t first) {
    const bool there = lane < a.rows_of_warp && first + lane < num_rows;
    return there ? uint2{a.by_row.begins[first + lane], a.by_row.ends[first + lane]} : uint2{};
  };
  const auto place_of = [&](uint2 lookups) {
    return RowPlace{a.by_row.rows[lookups.x], a.by_row.bags[lookups.x] / a.samples, lookups.x,
                    lookups.y - lookups.x};
  };
  // Loads ahead as UpdateRowsOfOne() does.
  uint32_t first = (blockIdx.x * kThreads + threadIdx.x) / kWarp * a.rows_of_warp;
  RowPlace place = place_of(lookups_at(first));
  uint2 next_lookups = lookups_at(first + stride);
  float finite = 0;
#pragma unroll 1
  for (; first < num_rows; first += stride) {
    const RowPlace next = place_of(next_lookups);
    next_lookups = lookups_at(first + 2 * stride);
    const bool there = place.count > 0;
    TouchRows(a.touched, place.row, there);
    uint32_t rest = __ballot_sync(kAllLanes, there);
#pragma unroll 1
    while (rest != 0) {
      const uint32_t t = __shfl_sync(kAllLanes, place.table, __ffs(rest) - 1);
      const uint32_t mask = __ballot_sync(kAllLanes, there && place.table == t);
      finite += a.tables[t].dim <= 4 * kWarp
                    ? UpdateSeveral<kType, 1, Value>(a, step, place, t, mask)
                    : UpdateSeveral<kType, 2, Value>(a, step, place, t, mask);
      rest &= ~mask;
    }
    place = next;
  }
  ReportFinite(finite, a.finite);
}

template <class Kernel>
void Launch(Kernel kernel, UpdateArguments arguments, int64_t rows_of_warp, int64_t most_rows,
            int64_t most_blocks, cudaStream_t stream) {
  arguments.rows_of_warp = static_cast<uint32_t>(rows_of_warp);
  const int64_t rows_of_block = kThreads / kWarp * rows_of_warp;
  const int64_t blocks =
      std::clamp<int64_t>((most_rows + rows_of_block - 1) / rows_of_block, 1, most_blocks);
  kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(arguments);
  CheckLaunch("updating embedding rows");
}

template <SparseOptimizerType kType, class Value>
void LaunchUpdate(const UpdateArguments& a, int64_t num_lookups, int multiprocessors,
                  cudaStream_t stream) {
  const int64_t most_blocks = 32 * multiprocessors;
  // Enough rows per warp that loading positions costs little, but few enough to occupy many warps.
  const int64_t rows_of_warp = std::clamp<int64_t>(
      num_lookups / (kItemsOfMultiprocessor * multiprocessors), kMinRowsOfWarp, kWarp);
  Launch(UpdateRowsOfOne<kType, Value>, a, rows_of_warp, num_lookups, most_blocks, stream);
  // In vocabularies sorted by frequency, frequent rows are neighbours: no warp should get many of
  // them.
  Launch(UpdateRowsOfSeveral<kType, Value>, a, kMinRowsOfWarp, num_lookups / 2, most_blocks,
         stream);
}

template <class Value>
void LaunchUpdate(SparseOptimizerType type, const UpdateArguments& a, int64_t num_lookups,
                  int multiprocessors, cudaStream_t stream) {
  const auto launch = [&](auto of) { of(a, num_lookups, multiprocessors, stream); };
  switch (type) {
    case SparseOptimizerType::kSgd:
      return launch(LaunchUpdate<SparseOptimizerType::kSgd, Value>);
    case SparseOptimizerType::kAdagrad:
      return launch(LaunchUpdate<SparseOptimizerType::kAdagrad, Value>);
    case SparseOptimizerType::kRowWiseAdagrad:
      return launch(LaunchUpdate<SparseOptimizerType::kRowWiseAdagrad, Value>);
    case SparseOptimizerType::kAdam:
    case SparseOptimizerType::kMomentum:
    case SparseOptimizerType::kFtrl:
      break;  // CheckDeviceSupports() refuses them
  }
}

}  // namespace

SparseUpdate::SparseUpdate(const EmbeddingShape& shape, uint64_t leaf_floats)
    : shape_(shape), leaves_(leaf_floats * sizeof(float)) {
  Check(shape.virtual_workers <= 1 << kWorkerLevels ? cudaSuccess : cudaErrorInvalidValue,
        "updating embedding rows: the virtual workers are too many");
  int device = 0;
  Check(cudaGetDevice(&device), "asking for the GPU");
  Check(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, device),
        "asking for the GPU's multiprocessors");
}

void SparseUpdate::Apply(const SparseStepOnDevice* step, const DeviceTable* tables,
                         const DeviceLookups& lookups, const LookupsByRow& by_row,
                         const void* d_features, uint32_t* touched, int32_t* finite,
                         cudaStream_t stream) {
  if (lookups.num_lookups == 0) return;
  const UpdateArguments arguments{
      .step = step,
      .tables = tables,
      .offsets = lookups.offsets,
      .samples = static_cast<uint32_t>(shape_.samples),
      .samples_of_worker = static_cast<uint32_t>(shape_.samples / shape_.virtual_workers),
      .workers = static_cast<uint32_t>(shape_.virtual_workers),
      .stride = static_cast<uint32_t>(shape_.features),
      .by_row = by_row,
      .d_features = d_features,
      .touched = touched,
      .finite = finite,
      .leaves = leaves_.as<float>(),
  };
  fork_.Record(stream);
  fork_.Await(beside_.get());
  UpdateRowsOfMany(arguments, shape_.optimizer, shape_.precision, multiprocessors_, beside_.get());
  join_.Record(beside_.get());
  if (shape_.precision == Precision::kFloat32) {
    LaunchUpdate<float>(shape_.optimizer, arguments, lookups.num_lookups, multiprocessors_, stream);
  } else {
    LaunchUpdate<__nv_bfloat16>(shape_.optimizer, arguments, lookups.num_lookups, multiprocessors_,
                                stream);
  }
  join_.Await(stream);
}

}  // namespace renzan::cuda
