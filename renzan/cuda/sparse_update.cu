#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "renzan/cuda/embedding_kernels.cuh"
#include "renzan/cuda/row_values.cuh"

namespace renzan::cuda {
namespace {

constexpr int kThreads = 256;                    // of a block
constexpr int64_t kMinRowsOfWarp = 8;            // whose places a warp loads together
constexpr int64_t kItemsOfMultiprocessor = 128;  // loads of such places, at least
constexpr int kVectorsAtOnce = 4;                // loads of gradients in flight per lane
constexpr int kLeafLookups = 32;                 // the same for rows of many lookups
constexpr int kLeafStepsAhead = 6;               // how many times as many are on their way to L2
constexpr int kLeavesAtOnce = 8;                 // a power of two
constexpr int kColumnChunks = 8;                 // tasks per leaf, of every eighth kWarp columns
constexpr int kWorkerLevels = 10;                // 2^10 virtual workers

// Rows of so many lookups and more are divided among warps: a warp adds what a virtual worker
// looked up, a leaf of the tree. A warp that does a row alone must not take long compared with all
// rows, and a leaf must be worth a task.
constexpr int64_t kMany = 33;
constexpr int64_t kManyPerWorker = 4;
constexpr int64_t kMaxRowsOfMany = 1 << 17;
constexpr uint64_t kMaxLeafFloats = 1 << 25;  // a row that finds no more room is not divided

// ---- One row.

struct RowOfMany {
  uint64_t leaves;  // where the sums of its virtual workers begin [virtual workers, dim]
  uint32_t row, table;
  uint32_t begin, end;  // of its lookups
};

struct RowsOfMany {
  unsigned long long floats;  // of leaves, that were asked for
  uint32_t count;
};

struct UpdateArguments {
  const SparseStepOnDevice* step;
  const DeviceTable* tables;
  const int32_t* offsets;
  uint32_t samples, samples_of_worker, workers;
  uint32_t stride;  // of d_features, in values
  const uint32_t *rows, *bags, *begins, *num_rows;
  const void* d_features;
  uint32_t* touched;
  int32_t* finite;
  int multiprocessors;
  uint32_t rows_of_warp;  // whose places its lanes hold; at most kWarp
  // Of rows of many lookups.
  uint32_t many;
  uint64_t leaf_floats;
  RowsOfMany* rows_of_many;
  RowOfMany* list;
  float* leaves;
};

// A row, and the lanes of a warp that share it.
struct GroupRow {
  bool there;  // else these lanes have no row now
  int lanes;   // a power of two, at least 4
  int dim;
  float* weights;
  float* state;
};

__device__ bool IsFinite(float x) { return (__float_as_uint(x) & 0x7F800000) != 0x7F800000; }
__device__ bool IsFinite(float4 x) {
  return IsFinite(x.x) && IsFinite(x.y) && IsFinite(x.z) && IsFinite(x.w);
}

// By what a pooled row's gradient is multiplied; `bag` is its place in `offsets`.
__device__ float MeanFactor(const int32_t* offsets, uint32_t bag) {
  const int32_t length = __ldg(offsets + bag + 1) - __ldg(offsets + bag);
  return length > 1 ? __fdiv_rn(1.0f, static_cast<float>(length)) : 1.0f;
}

// total + Σ g² in chunks of 16 columns (SumOfSquaresInChunks), for the group of each lane. A chunk
// is in four lanes: columns i and i + 8 are two lanes apart, i and i + 4 one.
template <int kVectors>
__device__ float AddSquares(const float4 (&g)[kVectors], int lanes, float total) {
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const auto add_other = [](float4 x, int distance) {
      return Add(x, make_float4(__shfl_xor_sync(kAllLanes, x.x, distance),
                                __shfl_xor_sync(kAllLanes, x.y, distance),
                                __shfl_xor_sync(kAllLanes, x.z, distance),
                                __shfl_xor_sync(kAllLanes, x.w, distance)));
    };
    const float4 x = add_other(add_other(Multiply(g[v], g[v]), 2), 1);
    const float chunk = __fadd_rn(__fadd_rn(x.x, x.z), __fadd_rn(x.y, x.w));
    for (int first = 0; first < lanes; first += 4)
      total = __fadd_rn(total, __shfl_sync(kAllLanes, chunk, first, lanes));
  }
  return total;
}

// w - rate·g
__device__ float4 Descend(float4 w, float rate, float4 g) {
  return make_float4(__fsub_rn(w.x, __fmul_rn(rate, g.x)), __fsub_rn(w.y, __fmul_rn(rate, g.y)),
                     __fsub_rn(w.z, __fmul_rn(rate, g.z)), __fsub_rn(w.w, __fmul_rn(rate, g.w)));
}

// w - lr·g / (√s + ε)
__device__ float4 DescendByState(float4 w, const SparseStepOnDevice& step, float4 g, float4 s) {
  const auto one = [&](float w, float g, float s) {
    return __fsub_rn(w, __fdiv_rn(__fmul_rn(step.lr, g), __fadd_rn(__fsqrt_rn(s), step.epsilon)));
  };
  return make_float4(one(w.x, g.x, s.x), one(w.y, g.y, s.y), one(w.z, g.z, s.z),
                     one(w.w, g.w, s.w));
}

// A lane's columns of its row; four each, or none.
template <int kVectors>
struct LaneColumns {
  int column[kVectors];
  bool there[kVectors];
};

// Into L2: until the gradient is summed, the row need not take registers.
__device__ void Prefetch(const void* row) { asm volatile("prefetch.global.L2 [%0];" ::"l"(row)); }

// One step of the rows of a warp's groups, by all its lanes; `gradient(columns, g)` is called for
// kVectors · 4 · lanes columns after the other, twice if there are more than those. Returns whether
// what this lane wrote is finite.
template <SparseOptimizerType kType, int kVectors, class Gradient>
__device__ bool StepRows(const SparseStepOnDevice& step, const GroupRow& row,
                         const Gradient& gradient) {
  constexpr bool kAdagrad = kType == SparseOptimizerType::kAdagrad;
  constexpr bool kRowWise = kType == SparseOptimizerType::kRowWiseAdagrad;
  const int lane = threadIdx.x & (row.lanes - 1), tile = 4 * kVectors * row.lanes;
  const auto more = [&](int first) { return kVectors > 1 && first < row.dim; };
  LaneColumns<kVectors> columns = {};
  float4 w[kVectors], g[kVectors], s[kVectors];
  const auto values = [&](const float* of_row, int v) {
    const float* from = of_row + columns.column[v];
    return columns.there[v] ? __ldcg(reinterpret_cast<const float4*>(from)) : Zeros();
  };
  const auto load_row = [&] {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      w[v] = values(row.weights, v);
      if constexpr (kAdagrad) s[v] = values(row.state, v);
    }
  };
  const auto load = [&](int first) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      columns.column[v] = first + 4 * (v * row.lanes + lane);
      columns.there[v] = row.there && columns.column[v] < row.dim;
      if (Gradient::kOfSeveral && columns.there[v]) {
        Prefetch(row.weights + columns.column[v]);
        if constexpr (kAdagrad) Prefetch(row.state + columns.column[v]);
      }
    }
    if constexpr (!Gradient::kOfSeveral) load_row();
    gradient(columns, g);
    if constexpr (Gradient::kOfSeveral) load_row();
    if (step.l2 == 0) return;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) g[v] = Add(g[v], Scale(step.l2, w[v]));
  };

  float rate = step.lr;
  bool finite = true;
  if constexpr (kRowWise) {
    float state = row.there ? __ldcg(row.state) : 0.0f, total = 0;
    int first = 0;
    do {
      load(first);
      total = AddSquares(g, row.lanes, total);
      first += tile;
    } while (more(first));
    state = __fadd_rn(state, __fdiv_rn(total, static_cast<float>(row.dim)));
    rate = __fdiv_rn(step.lr, __fadd_rn(__fsqrt_rn(state), step.epsilon));
    finite = IsFinite(state);
    if (row.there && lane == 0) *row.state = state;
  }
  int first = 0;
  do {
    if (!kRowWise || more(tile)) load(first);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      if (!columns.there[v]) continue;
      if (step.kept != 1) w[v] = Scale(step.kept, w[v]);
      if constexpr (kAdagrad) {
        s[v] = Add(s[v], Multiply(g[v], g[v]));
        w[v] = DescendByState(w[v], step, g[v], s[v]);
        *reinterpret_cast<float4*>(row.state + columns.column[v]) = s[v];
        finite &= IsFinite(s[v]);
      } else {
        w[v] = Descend(w[v], rate, g[v]);
      }
      *reinterpret_cast<float4*>(row.weights + columns.column[v]) = w[v];
      finite &= IsFinite(w[v]);
    }
    first += tile;
  } while (more(first));
  return finite;
}

__device__ void Touch(uint32_t* touched, uint32_t row) {
  atomicOr(touched + row / 32, 1u << row % 32);
}

// Row `row` (first_row + row) of a table, at whose row 0 weights and state begin.
template <SparseOptimizerType kType>
__device__ GroupRow RowOfTable(const DeviceTable& table, uint32_t row, bool there, int lanes) {
  const int dim = table.dim;
  const int64_t index = row - static_cast<uint32_t>(table.first_row);
  const int state_width = kType == SparseOptimizerType::kSgd       ? 0
                          : kType == SparseOptimizerType::kAdagrad ? dim
                                                                   : 1;
  return {there, lanes, dim, table.weights + index * dim, table.state + index * state_width};
}

// ---- Rows of one and of few lookups.

// What a lane knows of a row.
struct RowPlace {
  uint32_t row = 0, table = 0;
  uint32_t begin = 0, count = 0;  // its lookups
  uint32_t first_bag = 0;
};

// What the rows of a table get their gradients from.
template <class Value>
struct TableGradients {
  const UpdateArguments& a;
  const Value* from;  // where sample 0 has the table's columns
  uint32_t table;
  bool mean;
};

// The gradient of a row with one lookup.
template <class Value>
struct LookupGradient {
  static constexpr bool kOfSeveral = false;
  TableGradients<Value> of;
  RowPlace place;

  template <int kVectors>
  __device__ void operator()(const LaneColumns<kVectors>& columns, float4 (&g)[kVectors]) const {
    const uint32_t sample = place.first_bag - of.table * of.a.samples;
    const Value* from = of.from + uint64_t{sample} * of.a.stride;
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
      g[v] = columns.there[v] ? LoadFour(from + columns.column[v]) : Zeros();
    const float factor = of.mean ? MeanFactor(of.a.offsets, place.first_bag + of.table) : 1.0f;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) g[v] = Add(Scale(factor, g[v]), Zeros());
  }
};

// The gradient of a row with several lookups.
template <class Value>
struct LookupsGradient {
  static constexpr bool kOfSeveral = true;
  TableGradients<Value> of;
  RowPlace place;

  template <int kVectors>
  __device__ void operator()(const LaneColumns<kVectors>& columns, float4 (&sum)[kVectors]) const {
    constexpr uint32_t kAtOnce = kVectorsAtOnce / kVectors;
    TreeSum<kVectors, kWorkerLevels> tree;
    const auto clear = [&] {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) sum[v] = Zeros();
    };
    const uint32_t* bags = of.a.bags + place.begin;
    uint32_t worker = 0, end_of_worker = 0;  // the samples'
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
        // A sum that begins with +0 has no -0.
#pragma unroll
        for (int v = 0; v < kVectors; ++v)
          sum[v] = Add(sum[v], of.mean ? Scale(factor[u], x[u][v]) : x[u][v]);
      }
    }
    tree.Finish(sum);
  }
};

// Whether the row is left to SumLeaves and FinishRows.
__device__ bool DivideRow(const UpdateArguments& a, const RowPlace& place) {
  if (place.count < a.many) return false;
  const uint64_t floats = uint64_t{a.workers} * a.tables[place.table].dim;
  const uint64_t leaves = atomicAdd(&a.rows_of_many->floats, floats);
  if (leaves + floats > a.leaf_floats) return false;
  a.list[atomicAdd(&a.rows_of_many->count, 1)] = {leaves, place.row, place.table, place.begin,
                                                  place.begin + place.count};
  return true;
}

__device__ RowPlace PlaceOfLane(const RowPlace& place, int lane) {
  const auto get = [&](uint32_t value) { return __shfl_sync(kAllLanes, value, lane); };
  return {get(place.row), get(place.table), get(place.begin), get(place.count),
          get(place.first_bag)};
}

// A row that is updated next, and the gradients of its lookups.
template <SparseOptimizerType kType, int kVectors, class Value>
__device__ void PrefetchRow(const TableGradients<Value>& of, const GroupRow& row,
                            const RowPlace& place) {
  const int lane = threadIdx.x & (row.lanes - 1);
  if (kType == SparseOptimizerType::kRowWiseAdagrad && lane == 0) Prefetch(row.state);
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int column = 4 * (v * row.lanes + lane);
    if (column >= row.dim) continue;
    Prefetch(row.weights + column);
    if (kType == SparseOptimizerType::kAdagrad) Prefetch(row.state + column);
  }
  constexpr int kLine = 128 / sizeof(Value);
  for (uint32_t k = lane; k < place.count; k += row.lanes) {
    const uint32_t bag = place.count == 1 ? place.first_bag : __ldg(of.a.bags + place.begin + k);
    const Value* from = of.from + uint64_t{bag - of.table * of.a.samples} * of.a.stride;
    for (int column = 0; column < row.dim; column += kLine) Prefetch(from + column);
  }
}

// The rows of the lanes in `mask`, all of table `t`.
template <SparseOptimizerType kType, int kVectors, class Gradient, class Value>
__device__ bool UpdateRowsOfTable(const UpdateArguments& a, const SparseStepOnDevice& step,
                                  const RowPlace& place, uint32_t t, uint32_t mask) {
  const DeviceTable& table = a.tables[t];
  const TableGradients<Value> gradients{a, static_cast<const Value*>(a.d_features) + table.column,
                                        t, table.mean != 0 && a.offsets != nullptr};
  const int lanes = kVectors > 1 ? kWarp : max(4, LanesOfRow(table.dim));
  const int lane = threadIdx.x % kWarp;
  struct Turn {
    RowPlace place;
    bool there;
  };
  // A group for which no row is left has one that is there, without lookups.
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
  bool finite = true;
  Turn turn = take();
#pragma unroll 1
  for (bool more = true; more;) {
    more = mask != 0;
    Turn next = turn;
    if (more) {
      next = take();
      // Two rows are on their way: one alone leaves the memory idle.
      if (next.there)
        PrefetchRow<kType, kVectors>(
            gradients, RowOfTable<kType>(table, next.place.row, true, lanes), next.place);
    }
    finite &=
        StepRows<kType, kVectors>(step, RowOfTable<kType>(table, turn.place.row, turn.there, lanes),
                                  Gradient{gradients, turn.place});
    turn = next;
  }
  return finite;
}

// The bits of the lanes' rows, of which neighbours share words.
__device__ void TouchRows(uint32_t* touched, uint32_t row, bool chosen) {
  const uint32_t lanes = __ballot_sync(kAllLanes, chosen);
  if (!chosen) return;
  const uint32_t same = __match_any_sync(lanes, row / 32);
  const uint32_t bits = __reduce_or_sync(same, 1u << row % 32);
  if (threadIdx.x % kWarp == __ffs(same) - 1) atomicOr(touched + row / 32, bits);
}

// Rows of one lookup, or those of several: two launches, because most batches have many more of the
// former, which need few registers.
template <SparseOptimizerType kType, class Value, class Gradient>
__global__ void __launch_bounds__(kThreads, Gradient::kOfSeveral ? 2 : 3)
    UpdateRowsKernel(const __grid_constant__ UpdateArguments a) {
  const SparseStepOnDevice step = *a.step;
  const uint32_t num_rows = *a.num_rows, lane = threadIdx.x % kWarp;
  const uint32_t warps = gridDim.x * (kThreads / kWarp);
  bool finite = true;
#pragma unroll 1
  for (uint32_t first = (blockIdx.x * kThreads + threadIdx.x) / kWarp * a.rows_of_warp;
       first < num_rows; first += warps * a.rows_of_warp) {
    RowPlace place;
    bool chosen = false;
    if (lane < a.rows_of_warp && first + lane < num_rows) {
      place.begin = a.begins[first + lane];
      place.count = a.begins[first + lane + 1] - place.begin;
      chosen = Gradient::kOfSeveral == (place.count > 1);
    }
    if (chosen) {
      place.row = a.rows[place.begin];
      place.first_bag = a.bags[place.begin];
      place.table = place.first_bag / a.samples;
      if (Gradient::kOfSeveral) chosen = !DivideRow(a, place);
    }
    TouchRows(a.touched, place.row, chosen);
    uint32_t rest = __ballot_sync(kAllLanes, chosen);
#pragma unroll 1
    while (rest != 0) {
      const uint32_t t = __shfl_sync(kAllLanes, place.table, __ffs(rest) - 1);
      const uint32_t mask = __ballot_sync(kAllLanes, chosen && place.table == t);
      finite &= a.tables[t].dim <= 4 * kWarp
                    ? UpdateRowsOfTable<kType, 1, Gradient, Value>(a, step, place, t, mask)
                    : UpdateRowsOfTable<kType, 2, Gradient, Value>(a, step, place, t, mask);
      rest &= ~mask;
    }
  }
  if (!finite) *a.finite = 0;
}

// ---- Rows of many lookups.

// The first of [begin, end) whose bag is not before `bag`, sought by all lanes together.
__device__ uint32_t FindBag(const uint32_t* bags, uint32_t begin, uint32_t end, uint32_t bag) {
  while (begin < end) {
    const uint32_t stride = (end - begin + kWarp - 1) / kWarp;
    const uint32_t probe = begin + threadIdx.x % kWarp * stride;
    const bool before = probe < end && __ldg(bags + probe) < bag;
    const uint32_t n = __popc(__ballot_sync(kAllLanes, before));
    if (n == 0) return begin;
    end = min(end, begin + n * stride);
    begin += (n - 1) * stride + 1;
  }
  return begin;
}

// One column of a leaf per lane: its lookups are [begin, end).
template <class Value>
class LeafColumn {
 public:
  __device__ LeafColumn(const UpdateArguments& a, const DeviceTable& table, uint32_t t, int column)
      : a_(a),
        from_(static_cast<const Value*>(a.d_features) + table.column + column),
        there_(column < table.dim),
        mean_(table.mean != 0 && a.offsets != nullptr),
        table_(t) {}

  // The loads of the next lookups are on their way while those before are added, and so are their
  // bags' numbers two steps ahead.
  __device__ float Sum(uint32_t begin, uint32_t end) const {
    float sum = 0, x[kLeafLookups], next[kLeafLookups];
    uint32_t bag = BagOfLane(begin, end);
    float factor = Factor(bag);
    Load(bag, end - begin, x);
    bag = BagOfLane(begin + kLeafLookups, end);
    uint32_t far = BagOfLane(begin + kLeafStepsAhead * kLeafLookups, end);
#pragma unroll 1
    for (uint32_t k = begin; k < end; k += kLeafLookups) {
      const float next_factor = Factor(bag);
      Load(bag, end - min(k + kLeafLookups, end), next);
      bag = BagOfLane(k + 2 * kLeafLookups, end);
      if (there_) Prefetch(from_ + uint64_t{far - table_ * a_.samples} * a_.stride);
      far = BagOfLane(k + (kLeafStepsAhead + 1) * kLeafLookups, end);
      if (mean_) {
#pragma unroll
        for (int u = 0; u < kLeafLookups; ++u)
          x[u] = __fmul_rn(x[u], __shfl_sync(kAllLanes, factor, u));
      }
#pragma unroll
      for (int u = 0; u < kLeafLookups; ++u) {
        sum = __fadd_rn(sum, x[u]);
        x[u] = next[u];
      }
      factor = next_factor;
    }
    return sum;
  }

 private:
  // Of lookup k + lane; beyond the end, one that is there.
  __device__ uint32_t BagOfLane(uint32_t k, uint32_t end) const {
    return __ldg(a_.bags + min(k + threadIdx.x % kWarp, end - 1));
  }
  __device__ float Factor(uint32_t bag) const {
    return mean_ ? MeanFactor(a_.offsets, bag + table_) : 1.0f;
  }
  // The column of lane u's bag for u < n, else +0, which changes no sum that has no -0.
  __device__ void Load(uint32_t bag, uint32_t n, float (&x)[kLeafLookups]) const {
    const uint32_t sample = bag - table_ * a_.samples;
#pragma unroll
    for (int u = 0; u < kLeafLookups; ++u) {
      const uint32_t s = __shfl_sync(kAllLanes, sample, u);
      x[u] = there_ && u < n ? LoadOne(from_ + uint64_t{s} * a_.stride) : 0.0f;
    }
  }

  const UpdateArguments& a_;
  const Value* from_;
  bool there_, mean_;
  uint32_t table_;
};

// A warp's task is some columns of one leaf. A leaf that is missing becomes zeros, which count as
// much.
template <class Value>
__global__ void __launch_bounds__(kThreads) SumLeaves(const __grid_constant__ UpdateArguments a) {
  const uint32_t leaves = a.rows_of_many->count * a.workers, lane = threadIdx.x % kWarp;
#pragma unroll 1
  for (uint32_t task = (blockIdx.x * kThreads + threadIdx.x) / kWarp; task < leaves * kColumnChunks;
       task += gridDim.x * (kThreads / kWarp)) {
    const uint32_t chunk = task / leaves, leaf = task % leaves;
    const RowOfMany row = a.list[leaf / a.workers];
    const uint32_t worker = leaf % a.workers;
    const DeviceTable& table = a.tables[row.table];
    const int dim = table.dim;
    if (chunk * kWarp >= dim) continue;
    const uint32_t bag = row.table * a.samples + worker * a.samples_of_worker;
    const uint32_t begin = FindBag(a.bags, row.begin, row.end, bag);
    const uint32_t end = FindBag(a.bags, begin, row.end, bag + a.samples_of_worker);
#pragma unroll 1
    for (int first = chunk * kWarp; first < dim; first += kColumnChunks * kWarp) {
      const int column = first + lane;
      const float sum =
          begin < end ? LeafColumn<Value>(a, table, row.table, column).Sum(begin, end) : 0.0f;
      if (column < dim) a.leaves[row.leaves + uint64_t{worker} * dim + column] = sum;
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
  __device__ void operator()(const LaneColumns<kVectors>& columns, float4 (&sum)[kVectors]) const {
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
      sum[v] = columns.there[v] ? OfColumns(columns.column[v]) : Zeros();
  }

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
  const uint32_t count = a.rows_of_many->count;
  bool finite = true;
#pragma unroll 1
  for (uint32_t i = (blockIdx.x * kThreads + threadIdx.x) / kWarp; i < count;
       i += gridDim.x * (kThreads / kWarp)) {
    const RowOfMany row = a.list[i];
    const GroupRow place = RowOfTable<kType>(a.tables[row.table], row.row, true, kWarp);
    const LeavesGradient gradient{a.leaves + row.leaves, static_cast<int>(a.workers), place.dim};
    finite &= place.dim <= 4 * kWarp ? StepRows<kType, 1>(step, place, gradient)
                                     : StepRows<kType, 2>(step, place, gradient);
    if (threadIdx.x % kWarp == 0) Touch(a.touched, row.row);
  }
  if (!finite) *a.finite = 0;
}

template <SparseOptimizerType kType, class Value>
void LaunchUpdate(const UpdateArguments& a, int64_t num_lookups, cudaStream_t stream) {
  const int64_t rows_of_block = kThreads / kWarp * int64_t{a.rows_of_warp};
  const int64_t blocks =
      std::min<int64_t>((num_lookups + rows_of_block - 1) / rows_of_block, 32 * a.multiprocessors);
  const auto update = [&](auto kernel, uint32_t rows_of_warp) {
    UpdateArguments arguments = a;
    arguments.rows_of_warp = rows_of_warp;
    kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(arguments);
    CheckLaunch("updating embedding rows");
  };
  update(UpdateRowsKernel<kType, Value, LookupGradient<Value>>, a.rows_of_warp);
  // Frequent rows are neighbours in vocabularies sorted by frequency: no warp should have many.
  update(UpdateRowsKernel<kType, Value, LookupsGradient<Value>>, kMinRowsOfWarp);
  const unsigned few = static_cast<unsigned>(2 * a.multiprocessors);
  SumLeaves<Value><<<few, kThreads, 0, stream>>>(a);
  CheckLaunch("summing the gradients of embedding rows");
  FinishRows<kType><<<few, kThreads, 0, stream>>>(a);
  CheckLaunch("updating embedding rows of many lookups");
}

template <class Value>
void LaunchUpdate(SparseOptimizerType type, const UpdateArguments& a, int64_t num_lookups,
                  cudaStream_t stream) {
  switch (type) {
    case SparseOptimizerType::kSgd:
      return LaunchUpdate<SparseOptimizerType::kSgd, Value>(a, num_lookups, stream);
    case SparseOptimizerType::kAdagrad:
      return LaunchUpdate<SparseOptimizerType::kAdagrad, Value>(a, num_lookups, stream);
    case SparseOptimizerType::kRowWiseAdagrad:
      return LaunchUpdate<SparseOptimizerType::kRowWiseAdagrad, Value>(a, num_lookups, stream);
  }
}

}  // namespace

SparseUpdate::SparseUpdate(const EmbeddingShape& shape, int64_t max_lookups)
    : shape_(shape),
      many_(static_cast<uint32_t>(std::max(
          {kMany, kManyPerWorker * shape.virtual_workers, max_lookups / kMaxRowsOfMany + 1}))) {
  Check((shape.virtual_workers <= 1 << kWorkerLevels && shape.samples % shape.virtual_workers == 0)
            ? cudaSuccess
            : cudaErrorInvalidValue,
        "updating embedding rows: the virtual workers are too many or do not divide the "
        "samples");
  int device = 0;
  Check(cudaGetDevice(&device), "asking for the GPU");
  Check(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, device),
        "asking for the GPU's multiprocessors");
  list_bytes_ = Aligned((static_cast<size_t>(max_lookups) / many_ + 1) * sizeof(RowOfMany));
  leaf_floats_ =
      std::min(kMaxLeafFloats, static_cast<uint64_t>(max_lookups) / many_ *
                                   static_cast<uint64_t>(shape.virtual_workers * shape.features));
  memory_ = DeviceMemory(Aligned(sizeof(RowsOfMany)) + list_bytes_ + leaf_floats_ * sizeof(float));
}

void SparseUpdate::Apply(const SparseStepOnDevice* step, const DeviceTable* tables,
                         const DeviceLookups& lookups, const SortedLookups& sorted,
                         const void* d_features, uint32_t* touched, int32_t* finite,
                         cudaStream_t stream) {
  if (lookups.num_lookups == 0) return;
  // Many, so that their places cost little; not so many that few warps have any.
  const int64_t rows_of_warp = std::clamp<int64_t>(
      lookups.num_lookups / (kItemsOfMultiprocessor * multiprocessors_), kMinRowsOfWarp, kWarp);
  std::byte* const memory = memory_.as<std::byte>();
  const UpdateArguments arguments{
      .step = step,
      .tables = tables,
      .offsets = lookups.offsets,
      .samples = static_cast<uint32_t>(shape_.samples),
      .samples_of_worker = static_cast<uint32_t>(shape_.samples / shape_.virtual_workers),
      .workers = static_cast<uint32_t>(shape_.virtual_workers),
      .stride = static_cast<uint32_t>(shape_.features),
      .rows = sorted.rows(),
      .bags = sorted.bags(),
      .begins = sorted.begins(),
      .num_rows = sorted.num_rows(),
      .d_features = d_features,
      .touched = touched,
      .finite = finite,
      .multiprocessors = multiprocessors_,
      .rows_of_warp = static_cast<uint32_t>(rows_of_warp),
      .many = many_,
      .leaf_floats = leaf_floats_,
      .rows_of_many = reinterpret_cast<RowsOfMany*>(memory),
      .list = reinterpret_cast<RowOfMany*>(memory + Aligned(sizeof(RowsOfMany))),
      .leaves = reinterpret_cast<float*>(memory + Aligned(sizeof(RowsOfMany)) + list_bytes_),
  };
  Check(cudaMemsetAsync(arguments.rows_of_many, 0, sizeof(RowsOfMany), stream),
        "updating embedding rows");
  if (shape_.precision == Precision::kFloat32) {
    LaunchUpdate<float>(shape_.optimizer, arguments, lookups.num_lookups, stream);
  } else {
    LaunchUpdate<__nv_bfloat16>(shape_.optimizer, arguments, lookups.num_lookups, stream);
  }
}

}  // namespace renzan::cuda
