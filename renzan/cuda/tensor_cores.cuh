#pragma once

// Tensor core instructions, executed by a whole warp (PTX ISA: mma.m16n8k16, ldmatrix). Lane l is
// member l % 4 of group l / 4. A register holds two bfloat16, the first one in its low half.

#include <cuda_runtime.h>

#include <cstdint>

namespace renzan::cuda {

// sum [16, 8] += a [16, 16] · b [16, 8]. A lane has of
//   a    columns 2·member + {0, 1} of rows group (a[0]) and group + 8 (a[1]), and the columns that
//        are 8 further of the same rows (a[2], a[3]);
//   b    rows 2·member + {0, 1} (b0) and those that are 8 further (b1) of column `group`;
//   sum  columns 2·member + {0, 1} of rows group (sum[0], sum[1]) and group + 8 (sum[2], sum[3]).
__device__ inline void AddTileProduct(const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                                      float (&sum)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Loads a matrix [32, 8] of bfloat16 from shared memory; each lane passes the address of its own
// row (a multiple of 16 bytes). to[i] = rows 8·i + 2·member + {0, 1} of column `group`.
__device__ inline void LoadTransposedTile(const void* row, uint32_t (&to)[4]) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

}  // namespace renzan::cuda
