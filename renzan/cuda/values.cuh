#pragma once

// Values of either precision as float32, several at a time, and grids. For .cu files.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "renzan/tensor/precision.h"

namespace renzan::cuda {

// For kernels limited by memory bandwidth. 8 blocks fill a multiprocessor, and an H100 has 132;
// threads take several turns if there is more to do.
inline constexpr int kStreamingThreads = 256;
inline constexpr int64_t kStreamingBlocks = 132 * 8;

inline unsigned StreamingBlocks(int64_t items, int64_t items_of_a_block = kStreamingThreads) {
  const int64_t blocks = (items + items_of_a_block - 1) / items_of_a_block;
  return static_cast<unsigned>(std::clamp<int64_t>(blocks, 1, kStreamingBlocks));
}

// Calls body(T()) with the type of the precision's values.
template <class Body>
void WithValueType(Precision precision, const Body& body) {
  if (precision == Precision::kFloat32) {
    body(float());
  } else {
    body(__nv_bfloat16());
  }
}

template <class T>
inline constexpr int kValuesOf16Bytes = 16 / static_cast<int>(sizeof(T));

template <class T, int kCount>
inline constexpr int kGroupOf = kCount < kValuesOf16Bytes<T> ? kCount : kValuesOf16Bytes<T>;

template <class... Pointers>
bool AreAlignedTo16Bytes(const Pointers*... pointers) {
  return ((reinterpret_cast<uintptr_t>(pointers) | ...) & 15) == 0;
}

// What one instruction loads or stores.
template <class T, int kCount>
struct alignas(kCount * sizeof(T)) ValueGroup {
  T at[kCount];
};

__device__ inline float ToFloat(float value) { return value; }
__device__ inline float ToFloat(__nv_bfloat16 value) { return __bfloat162float(value); }

// To nearest, ties to even.
template <class T>
__device__ T Rounded(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
    return __float2bfloat16_rn(value);
  }
}

template <int kCount, class T>
__device__ void LoadValues(const T* from, float (&to)[kCount]) {
  constexpr int kGroup = kGroupOf<T, kCount>;
#pragma unroll
  for (int i = 0; i < kCount; i += kGroup) {
    const auto group = *reinterpret_cast<const ValueGroup<T, kGroup>*>(from + i);
#pragma unroll
    for (int j = 0; j < kGroup; ++j) to[i + j] = ToFloat(group.at[j]);
  }
}

template <int kCount, class T>
__device__ void StoreValues(const float (&from)[kCount], T* to) {
  constexpr int kGroup = kGroupOf<T, kCount>;
#pragma unroll
  for (int i = 0; i < kCount; i += kGroup) {
    ValueGroup<T, kGroup> group;
#pragma unroll
    for (int j = 0; j < kGroup; ++j) group.at[j] = Rounded<T>(from[i + j]);
    *reinterpret_cast<ValueGroup<T, kGroup>*>(to + i) = group;
  }
}

// A group of kCount values somewhere in an array is either a WholeGroup, all there and aligned as
// LoadValues and StoreValues require, or only its first `left` values exist (all of them if `left`
// is larger): the others are read as zeros and not stored.
struct WholeGroup {};

template <int kCount, class T>
__device__ void LoadGroup(const T* from, WholeGroup, float (&to)[kCount]) {
  LoadValues(from, to);
}
template <int kCount, class T>
__device__ void LoadGroup(const T* from, int64_t left, float (&to)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) to[i] = i < left ? ToFloat(from[i]) : 0.0f;
}

template <int kCount, class T>
__device__ void StoreGroup(const float (&from)[kCount], WholeGroup, T* to) {
  StoreValues(from, to);
}
template <int kCount, class T>
__device__ void StoreGroup(const float (&from)[kCount], int64_t left, T* to) {
#pragma unroll
  for (int i = 0; i < kCount; ++i)
    if (i < left) to[i] = Rounded<T>(from[i]);
}

// Calls body(WholeGroup()) or body(left), so that loads of whole groups have no branches among
// them.
template <int kCount, class Body>
__device__ void WithGroup(bool aligned, int64_t left, const Body& body) {
  if (aligned && left >= kCount) {
    body(WholeGroup());
  } else {
    body(left);
  }
}

// Calls body(i) for i = 0, step, 2·step, ... below n, using all threads of the grid.
template <class Body>
__device__ void ForAll(int64_t n, int64_t step, const Body& body) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = first * step; i < n; i += threads * step) body(i);
}

// Calls body(i, group) for the groups of n values.
template <int kCount, class Body>
__device__ void ForGroups(int64_t n, bool aligned, const Body& body) {
  ForAll(n, kCount, [&](int64_t i) {
    WithGroup<kCount>(aligned, n - i, [&](auto group) { body(i, group); });
  });
}

}  // namespace renzan::cuda
