#pragma once

// Negatives of training: for each sample, ids of a feature's table other than the sample's own,
// drawn uniformly and independently. They are a pure function of the seed, the feature's name, the
// step, the sample's place in the global batch and the negative's number, so neither workers nor
// threads nor interruptions change them. Thread-safe.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "renzan/data/batch.h"

namespace renzan {

struct NegativesOptions {
  std::string name;                    // of the feature
  size_t feature = 0;                  // of a batch's `categorical`; it has one value per sample
  int64_t count = 0;                   // per sample
  int64_t ids_begin = 0, ids_end = 0;  // drawn from; at least two
};

class SampledNegatives {
 public:
  SampledNegatives(uint64_t seed, std::vector<NegativesOptions> features);

  // Sets batch->negatives; sample i of the batch is sample first_sample + i of the global one.
  void Draw(int64_t step, int64_t first_sample, Batch* batch) const;

 private:
  std::vector<NegativesOptions> features_;
  std::vector<uint64_t> keys_;
};

}  // namespace renzan
