#pragma once

// Negative downsampling: keeps a share of the samples whose label is 0. Which ones is a function of
// the seed and of the row's number among the valid rows of the input, so an import can be repeated.

#include <cstdint>

#include "renzan/base/philox.h"

namespace renzan {

class NegativeSampler {
 public:
  // `share` in (0, 1]: how likely each is kept, independently of the others.
  NegativeSampler(double share, uint64_t seed)
      : share_(share), key_(PhiloxKey(seed, "keep_negatives")) {}

  bool Keeps(int64_t row) const {
    constexpr uint64_t kWords = 4;
    const uint64_t at = static_cast<uint64_t>(row);
    return share_ == 1 || Philox::Draw(key_, at / kWords)[at % kWords] * 0x1.0p-32 < share_;
  }

 private:
  double share_;
  uint64_t key_;
};

}  // namespace renzan
