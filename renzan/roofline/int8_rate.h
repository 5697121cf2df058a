#pragma once

#include "renzan/base/thread_pool.h"

namespace renzan {

// Operations per second of int8 products (a multiply-add counts as two) with AVX-512's VNNI, whose
// operands fit into the L1 cache, over all threads. 0 where the processor lacks that instruction.
double MeasureMatrixInt8Ops(ThreadPool& pool);

}  // namespace renzan
