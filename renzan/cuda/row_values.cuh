#pragma once

// Four columns of a row in a lane's registers, in device code: loads, stores, and sums in the order
// of the CPU's kernels. Internal header of the embedding kernels.

#include <cuda_bf16.h>

#include <cstdint>

namespace renzan::cuda {

constexpr int kWarp = 32;
constexpr uint32_t kAllLanes = 0xFFFFFFFF;

inline __device__ float4 Zeros() { return make_float4(0, 0, 0, 0); }

inline __device__ float4 Add(float4 a, float4 b) {
  return make_float4(__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z),
                     __fadd_rn(a.w, b.w));
}

inline __device__ float4 Multiply(float4 a, float4 b) {
  return make_float4(__fmul_rn(a.x, b.x), __fmul_rn(a.y, b.y), __fmul_rn(a.z, b.z),
                     __fmul_rn(a.w, b.w));
}

inline __device__ float4 Scale(float factor, float4 a) {
  return Multiply(make_float4(factor, factor, factor, factor), a);
}

// Loads data that nobody writes during the kernel, bypassing L1: there are too many rows to find
// one there again, and they would displace ids and offsets.
inline __device__ float4 LoadFour(const float* from) {
  float4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(from));
  return v;
}

inline __device__ float4 LoadFour(const __nv_bfloat16* from) {
  uint32_t low, high;
  asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
               : "=r"(low), "=r"(high)
               : "l"(from));
  return make_float4(__uint_as_float(low << 16), __uint_as_float(low & 0xFFFF0000),
                     __uint_as_float(high << 16), __uint_as_float(high & 0xFFFF0000));
}

// A streaming store: the data is read too late to still be in L2.
inline __device__ void StoreFour(float4 v, float* to) { __stcs(reinterpret_cast<float4*>(to), v); }

inline __device__ void StoreFour(float4 v, __nv_bfloat16* to) {
  const auto bits = [](float value) {
    return uint32_t{__bfloat16_as_ushort(__float2bfloat16_rn(value))};
  };
  __stcs(reinterpret_cast<uint2*>(to),
         make_uint2(bits(v.x) | bits(v.y) << 16, bits(v.z) | bits(v.w) << 16));
}

// Lanes that share a row of `dim` columns, four each: a power of two.
inline __device__ int LanesOfRow(int dim) {
  const int quads = (dim + 3) / 4;
  return quads >= kWarp ? kWarp : quads <= 1 ? 1 : 1 << (kWarp - __clz(quads - 1));
}

// TreeOrder (renzan/embedding/tree_order.h) for vectors in registers; at most 2^kLevels leaves.
template <int kVectors, int kLevels>
class TreeSum {
 public:
  // `sum` is the sum of `leaf`; `next` is the next leaf, which is greater.
  __device__ void Push(uint32_t leaf, uint32_t next, float4 (&sum)[kVectors]) {
    const int level = 31 - __clz(leaf ^ next);  // of the lowest common node
    const uint32_t below = (1u << level) - 1;
    AddPending(below, sum);
    occupied_ = (occupied_ & ~below) | 1u << level;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) pending_[level][v] = sum[v];
  }

  // `sum` is the last leaf's sum, and becomes the sum of all.
  __device__ void Finish(float4 (&sum)[kVectors]) {
    AddPending(kAllLanes, sum);
    occupied_ = 0;
  }

 private:
  __device__ void AddPending(uint32_t levels, float4 (&sum)[kVectors]) {
#pragma unroll 1
    for (uint32_t due = occupied_ & levels; due != 0; due &= due - 1) {
      const int level = __ffs(due) - 1;
#pragma unroll
      for (int v = 0; v < kVectors; ++v) sum[v] = Add(pending_[level][v], sum[v]);
    }
  }

  // [level]: the left child of a node of this level whose right child is incomplete.
  float4 pending_[kLevels][kVectors];
  uint32_t occupied_ = 0;
};

}  // namespace renzan::cuda
