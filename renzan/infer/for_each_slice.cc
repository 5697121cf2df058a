#include "renzan/infer/for_each_slice.h"

#include <algorithm>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/data/batch_loader.h"

namespace renzan {

void ForEachSlice(
    const Predictor& model, const Communicator& comm, const Dataset& dataset, KnownIds* known_ids,
    const SliceOptions& options,
    FunctionRef<bool(int64_t index, int64_t real, const Batch& slice, const Batch* next)> visit) {
  const int64_t batch_size = options.batch_size, count = options.count;
  const int64_t slice_begin = model.slice_begin(batch_size);
  // A model that one worker has whole computes all samples.
  CHECK(comm.world_size() == 1 || !model.takes_short_slices());
  const int64_t size = model.slice_end(batch_size) - slice_begin;
  const int64_t num_batches = (count + batch_size - 1) / batch_size;
  if (num_batches == 0) return;
  const auto begin_of = [slice_begin, batch_size](int64_t index) {
    return slice_begin + index * batch_size;
  };
  const auto real_of = [&](int64_t index) {
    return std::clamp<int64_t>(count - begin_of(index), 0, size);
  };
  const bool pads = !model.takes_short_slices();
  const auto rows_of = [&](int64_t index, std::vector<int64_t>* wanted) {
    wanted->resize(static_cast<size_t>(pads ? size : real_of(index)));
    for (size_t i = 0; i < wanted->size(); ++i)
      (*wanted)[i] = options.row(std::min(begin_of(index) + static_cast<int64_t>(i), count - 1));
  };
  ChangeBatch map_unknown;
  if (known_ids != nullptr)
    map_unknown = [&](int64_t index, Batch* batch) {
      known_ids->MapUnknown(options.counts_ids ? real_of(index) : 0, batch);
    };
  BatchLoader loader(dataset, num_batches, rows_of, model.batch_readers(), map_unknown);
  const Batch* slice = &loader.Next();
  for (int64_t index = 0; index < num_batches; ++index) {
    const Batch* const next = index + 1 < num_batches ? &loader.Next() : nullptr;
    if (!visit(index, real_of(index), *slice, next)) return;
    slice = next;
  }
}

}  // namespace renzan
