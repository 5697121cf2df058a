#pragma once

// Included before Highway by files whose functions only classes of numerics.isa with AVX2 or better
// call (isa.h), so that they are not compiled for SSE4, which would take half as long again.

#ifdef HWY_BASELINE_TARGETS  // on x86: cmake/targets.cmake
#undef HWY_BASELINE_TARGETS
#define HWY_BASELINE_TARGETS HWY_AVX2
#endif
