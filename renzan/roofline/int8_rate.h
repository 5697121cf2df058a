#pragma once

#include "renzan/base/thread_pool.h"

namespace renzan {

// The rate of int8 products whose operands fit into the L1 cache, over all threads.
struct Int8Rate {
  const char* isa = "";       // "amx", or "avx512_vnni"; empty: the processor has neither
  double ops_per_second = 0;  // a multiply-add counts as two
};

Int8Rate MeasureInt8Rate(ThreadPool& pool);

}  // namespace renzan
