#pragma once

// Limits and words that several sections share.

#include <cstdint>
#include <string>
#include <vector>

namespace renzan {

inline constexpr int64_t kMaxSteps = int64_t{1} << 53;
inline constexpr int kMaxBlocks = 1024;  // of rows

inline bool IsPowerOfTwo(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

inline std::vector<std::string> FloatTypeNames() { return {"fp32", "fp16", "bf16"}; }

}  // namespace renzan
