#include "renzan/infer/item_candidates.h"

#include <algorithm>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/data/batch_loader.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/vocabulary.h"

namespace renzan {
namespace {

template <typename T>
void Append(const T* values, size_t n, std::string* key) {
  key->append(reinterpret_cast<const char*>(values), n * sizeof(T));
}

}  // namespace

ItemCandidates::ItemCandidates(const MatchSide& item, const DatasetSchema& schema)
    : dense_(item.dense) {
  for (size_t f = 0; f < schema.categorical.size(); ++f)
    if (std::find(item.features.begin(), item.features.end(),
                  EscapeName(schema.categorical[f].name)) != item.features.end())
      categorical_.push_back(f);
  CHECK(categorical_.size() == item.features.size());
}

// Numbers of values come before the values, so no two combinations have one text.
const std::string& ItemCandidates::KeyOf(const Batch& batch, int64_t sample) const {
  const size_t i = static_cast<size_t>(sample);
  key_.clear();
  if (dense_) {
    const size_t num_dense = batch.dense.size() / static_cast<size_t>(batch.size);
    Append(batch.dense.data() + i * num_dense, num_dense, &key_);
  }
  for (const size_t f : categorical_) {
    const FeatureIds& ids = batch.categorical[f];
    if (ids.one_hot()) {
      Append(&ids.values[i], 1, &key_);
      continue;
    }
    const int32_t begin = ids.offsets[i], n = ids.offsets[i + 1] - begin;
    Append(&n, 1, &key_);
    Append(ids.values.data() + begin, static_cast<size_t>(n), &key_);
    if (!ids.weights.empty()) Append(ids.weights.data() + begin, static_cast<size_t>(n), &key_);
  }
  return key_;
}

void ItemCandidates::SkipReplaced(const DatasetManifest& manifest) {
  const DatasetSchema schema = manifest.schema();
  replaced_.clear();
  for (const size_t f : categorical_)
    if (manifest.may_train_unseen(schema.categorical[f].name)) replaced_.push_back(f);
}

bool ItemCandidates::IsReplaced(const Batch& batch, int64_t sample) const {
  return std::any_of(replaced_.begin(), replaced_.end(), [&](size_t f) {
    const FeatureIds& ids = batch.categorical[f];
    const size_t i = static_cast<size_t>(sample);
    const int64_t begin = ids.one_hot() ? sample : ids.offsets[i];
    const int64_t end = ids.one_hot() ? sample + 1 : ids.offsets[i + 1];
    return std::count(ids.values.begin() + begin, ids.values.begin() + end, Vocabulary::kRare) > 0;
  });
}

void ItemCandidates::Add(const Batch& batch, int64_t sample, int64_t row) {
  if (!numbers_.try_emplace(KeyOf(batch, sample), size()).second) return;
  rows_.push_back(row);
  key_bytes_ += key_.size();
}

int64_t ItemCandidates::bytes() const {
  // A node of the map with its text, a bucket and a row, about.
  constexpr size_t kOverhead = 96;
  return static_cast<int64_t>(key_bytes_ + rows_.size() * kOverhead);
}

int64_t ItemCandidates::NumberOf(const Batch& batch, int64_t sample) const {
  return numbers_.at(KeyOf(batch, sample));
}

void ForEachBatch(const ModelRows& rows,
                  FunctionRef<void(const Batch& batch, int64_t first_row)> visit) {
  constexpr int64_t kRows = 4096;
  const auto begin_of = [&](int64_t index) { return rows.rows.begin + index * kRows; };
  const auto rows_of = [&](int64_t index, std::vector<int64_t>* wanted) {
    wanted->resize(static_cast<size_t>(std::min(kRows, rows.rows.end - begin_of(index))));
    for (size_t i = 0; i < wanted->size(); ++i)
      (*wanted)[i] = begin_of(index) + static_cast<int64_t>(i);
  };
  ChangeBatch map_unknown;
  if (rows.known_ids != nullptr)
    map_unknown = [&](int64_t, Batch* batch) { rows.known_ids->MapUnknown(0, batch); };
  const int64_t num_batches = (rows.rows.size() + kRows - 1) / kRows;
  BatchLoader loader(*rows.dataset, num_batches, rows_of, 1, map_unknown);
  for (int64_t index = 0; index < num_batches; ++index) visit(loader.Next(), begin_of(index));
}

}  // namespace renzan
