#include "renzan/cuda/elementwise.cuh"
#include "renzan/cuda/memory.cuh"
#include "renzan/cuda/values.cuh"

namespace renzan::cuda {
namespace {

constexpr int kMostBatches = 1024;
constexpr int kLeaves = 16;  // leaves of a subtree, kept in registers

// One blockIdx.y for each place.
dim3 PlaceGrid(int num_places, int64_t largest) {
  return dim3(StreamingBlocks(largest, kStreamingThreads * 4), static_cast<unsigned>(num_places));
}

// At most four consecutive values of a row.
struct PlacePart {
  int64_t flat, padded;  // the first one's index
  int64_t values;
};

// Calls body(part) for all of the place's rows. Uses 32 bits, whose division is much faster.
template <class Body>
__device__ void ForParts(const ParameterPlace& place, const Body& body) {
  const uint32_t parts_of_row = static_cast<uint32_t>((place.columns + 3) / 4);
  ForAll(place.rows * parts_of_row, 1, [&](int64_t i) {
    const uint32_t row = static_cast<uint32_t>(i) / parts_of_row;
    const uint32_t column = static_cast<uint32_t>(i) % parts_of_row * 4;
    body(PlacePart{.flat = place.offset + row * place.columns + column,
                   .padded = place.padded_offset + row * place.stride + column,
                   .values = place.columns - column});
  });
}

// Whether all parts of four values begin at multiples of 16 bytes (8 for bfloat16) from the
// beginning of the array.
__device__ bool IsFlatAligned(const ParameterPlace& place) {
  return ((place.offset | place.columns) & 3) == 0;
}
__device__ bool IsPaddedAligned(const ParameterPlace& place) {
  return ((place.padded_offset | place.stride) & 3) == 0;
}

template <class T>
__global__ void __launch_bounds__(kStreamingThreads)
    PackParametersKernel(const ParameterPlace* places, const float* flat, bool flat_aligned,
                         T* weights, bool weights_aligned) {
  const ParameterPlace place = places[blockIdx.y];
  const bool from_aligned = flat_aligned && IsFlatAligned(place);
  const bool to_aligned = weights_aligned && IsPaddedAligned(place);
  ForParts(place, [&](const PlacePart& part) {
    float value[4];
    WithGroup<4>(from_aligned, part.values,
                 [&](auto group) { LoadGroup(flat + part.flat, group, value); });
    WithGroup<4>(to_aligned, part.values,
                 [&](auto group) { StoreGroup(value, group, weights + part.padded); });
  });
}

// The balanced tree's sum of a part's gradients over kBatches virtual workers, `stride` floats
// apart.
template <int kBatches, class Group>
__device__ void SumSubtree(const float* gradients, int64_t stride, Group group, float (&sum)[4]) {
  float value[kBatches][4];
#pragma unroll
  for (int v = 0; v < kBatches; ++v) LoadGroup(gradients + v * stride, group, value[v]);
#pragma unroll
  for (int step = 1; step < kBatches; step *= 2) {
#pragma unroll
    for (int v = 0; v < kBatches; v += 2 * step) {
#pragma unroll
      for (int i = 0; i < 4; ++i) value[v][i] += value[v + step][i];
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) sum[i] = value[0][i];
}

// The same for more than kLeaves, a power of two. A subtree's sum waits for its sibling's.
template <class Group>
__device__ void SumTree(int batches, const float* gradients, int64_t stride, Group group,
                        float (&sum)[4]) {
  float waiting[10][4];
  static_assert(kLeaves << 10 >= kMostBatches);
  for (int subtree = 0; subtree < batches / kLeaves; ++subtree) {
    SumSubtree<kLeaves>(gradients + subtree * kLeaves * stride, stride, group, sum);
    int level = 0;
    for (int rest = subtree; rest % 2 != 0; rest /= 2, ++level) {
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[i] = waiting[level][i] + sum[i];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) waiting[level][i] = sum[i];
  }
}

// kBatches: 0 if there are more than kLeaves.
template <int kBatches>
__global__ void __launch_bounds__(kStreamingThreads)
    SumGradientsKernel(const ParameterPlace* places, int batches, const float* gradients,
                       int64_t batch_stride, bool gradients_aligned, float* flat,
                       bool flat_aligned) {
  const ParameterPlace place = places[blockIdx.y];
  const bool from_aligned = gradients_aligned && IsPaddedAligned(place);
  const bool to_aligned = flat_aligned && IsFlatAligned(place);
  ForParts(place, [&](const PlacePart& part) {
    float sum[4] = {};
    WithGroup<4>(from_aligned, part.values, [&](auto group) {
      if constexpr (kBatches > 0) {
        SumSubtree<kBatches>(gradients + part.padded, batch_stride, group, sum);
      } else {
        SumTree(batches, gradients + part.padded, batch_stride, group, sum);
      }
    });
    WithGroup<4>(to_aligned, part.values,
                 [&](auto group) { StoreGroup(sum, group, flat + part.flat); });
  });
}

auto* SumGradientsKernelFor(int batches) {
  switch (batches) {
    case 1:
      return SumGradientsKernel<1>;
    case 2:
      return SumGradientsKernel<2>;
    case 4:
      return SumGradientsKernel<4>;
    case 8:
      return SumGradientsKernel<8>;
    case 16:
      return SumGradientsKernel<16>;
    default:
      return SumGradientsKernel<0>;
  }
}

}  // namespace

void PackParameters(const ParameterPlace* places, int num_places, int64_t largest,
                    const float* flat, Precision precision, void* weights, cudaStream_t stream) {
  if (num_places == 0 || largest == 0) return;
  WithValueType(precision, [&](auto type) {
    using T = decltype(type);
    PackParametersKernel<T><<<PlaceGrid(num_places, largest), kStreamingThreads, 0, stream>>>(
        places, flat, AreAlignedTo16Bytes(flat), static_cast<T*>(weights),
        AreAlignedTo16Bytes(weights));
  });
  CheckLaunch("packing the parameters");
}

void SumGradients(const ParameterPlace* places, int num_places, int64_t largest, int batches,
                  const float* gradients, int64_t batch_stride, float* flat, cudaStream_t stream) {
  if (num_places == 0 || largest == 0) return;
  const bool is_power_of_two = batches > 0 && (batches & (batches - 1)) == 0;
  Check(is_power_of_two && batches <= kMostBatches ? cudaSuccess : cudaErrorInvalidValue,
        "summing the gradients of virtual workers");
  auto* const kernel = SumGradientsKernelFor(batches);
  kernel<<<PlaceGrid(num_places, largest), kStreamingThreads, 0, stream>>>(
      places, batches, gradients, batch_stride,
      AreAlignedTo16Bytes(gradients) && batch_stride % 4 == 0, flat, AreAlignedTo16Bytes(flat));
  CheckLaunch("summing the gradients of virtual workers");
}

}  // namespace renzan::cuda
