#include "renzan/data/known_ids.h"

#include "renzan/base/error.h"
#include "renzan/data/vocabulary.h"

namespace renzan {

void KnownIds::MapUnknown(int64_t counted, Batch* batch) {
  CHECK(batch->categorical.size() == features_.size() && counted <= batch->size);
  int64_t all = 0, unseen = 0;
  for (size_t f = 0; f < features_.size(); ++f) {
    const Feature& feature = features_[f];
    FeatureIds& ids = batch->categorical[f];
    const int64_t lookups = ids.one_hot() ? counted : ids.offsets[static_cast<size_t>(counted)];
    all += lookups;
    for (int64_t i = 0; i < std::ssize(ids.values); ++i) {
      int64_t& id = ids.values[static_cast<size_t>(i)];
      const bool unknown = id >= feature.num_ids;
      if (unknown) id = Vocabulary::kRare;
      unseen += i < lookups && (unknown || (feature.has_unseen_row && id == Vocabulary::kRare));
    }
  }
  lookups_ += all;
  unseen_ += unseen;
}

}  // namespace renzan
