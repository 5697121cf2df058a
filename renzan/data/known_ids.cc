#include "renzan/data/known_ids.h"

#include "renzan/base/error.h"
#include "renzan/data/vocabulary.h"

namespace renzan {

void KnownIds::MapUnknown(int64_t counted, Batch* batch) {
  CHECK(batch->categorical.size() == num_ids_.size() && counted <= batch->size);
  int64_t all = 0, mapped = 0;
  for (size_t f = 0; f < num_ids_.size(); ++f) {
    FeatureIds& ids = batch->categorical[f];
    const int64_t lookups = ids.one_hot() ? counted : ids.offsets[static_cast<size_t>(counted)];
    all += lookups;
    for (int64_t i = 0; i < std::ssize(ids.values); ++i) {
      int64_t& id = ids.values[static_cast<size_t>(i)];
      if (id < num_ids_[f]) continue;
      id = Vocabulary::kRare;
      mapped += i < lookups;
    }
  }
  lookups_ += all;
  mapped_ += mapped;
}

}  // namespace renzan
