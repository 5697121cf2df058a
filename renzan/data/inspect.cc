#include "renzan/data/inspect.h"

// Inlined, as in vocabulary.cc.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/value_names.h"
#include "renzan/data/vocabulary.h"

namespace renzan {
namespace {

constexpr int64_t kRowsPerRead = 4096;
// The limit for counting distinct values of a dense feature, which may differ in every row.
constexpr size_t kMaxDistinct = 100'000;

// Of labels, some of which may be missing.
struct LabelMean {
  int64_t rows = 0;
  double sum = 0;

  void Add(float label) {
    if (std::isnan(label)) return;
    ++rows;
    sum += label;
  }
  // NaN where no row has the label.
  double mean() const { return sum / static_cast<double>(rows); }
};

struct Count {
  int64_t rows = 0;
  LabelMean labels;

  void Add(float label) {
    ++rows;
    labels.Add(label);
  }
};

// Most frequent first; ties by lower key.
template <typename Key>
std::vector<std::pair<Key, Count>> MostFrequent(std::vector<std::pair<Key, Count>> counts,
                                                size_t num_top) {
  const size_t kept = std::min(num_top, counts.size());
  std::partial_sort(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(kept),
                    counts.end(), [](const auto& a, const auto& b) {
                      return a.second.rows != b.second.rows ? a.second.rows > b.second.rows
                                                            : a.first < b.first;
                    });
  counts.resize(kept);
  return counts;
}

TopValue MakeTop(std::string value, const Count& count) {
  return {std::move(value), count.rows, count.labels.mean()};
}

class DenseCounter {
 public:
  void Add(float value, float label, FeatureSummary* summary) {
    summary->min = summary->values == 0 ? value : std::min<double>(summary->min, value);
    summary->max = summary->values == 0 ? value : std::max<double>(summary->max, value);
    ++summary->values;
    sum_ += value;
    if (value == 0) {
      ++summary->missing;
      return;
    }
    const auto found = counts_.find(value);
    if (found != counts_.end())
      found->second.Add(label);
    else if (counts_.size() < kMaxDistinct)
      counts_[value].Add(label);
    else
      summary->distinct_capped = true;
  }

  void Finish(size_t num_top, FeatureSummary* summary) const {
    if (summary->values > 0) summary->mean = sum_ / static_cast<double>(summary->values);
    summary->distinct = static_cast<int64_t>(counts_.size());
    const std::vector<std::pair<float, Count>> all(counts_.begin(), counts_.end());
    for (const auto& [value, count] : MostFrequent(all, num_top))
      summary->top.push_back(MakeTop(fmt::format("{}", value), count));
  }

 private:
  std::unordered_map<float, Count> counts_;
  double sum_ = 0;
};

// The vectors of one column.
class VectorCounter {
 public:
  explicit VectorCounter(const DenseVector& vector) : vector_(vector) {}

  // `dense`: of the whole row.
  void Add(const float* dense, FeatureSummary* summary) {
    const std::span<const float> numbers(dense + vector_.first,
                                         static_cast<size_t>(vector_.dimension));
    bool is_missing = true;
    for (const float number : numbers) {
      const bool is_first = summary->values == 0 && &number == numbers.data();
      summary->min = is_first ? number : std::min<double>(summary->min, number);
      summary->max = is_first ? number : std::max<double>(summary->max, number);
      sum_ += number;
      is_missing &= number == 0;
    }
    ++summary->values;
    summary->missing += is_missing;
    if (is_missing) return;
    if (seen_.size() < kMaxDistinct)
      seen_.insert(XXH64(numbers.data(), numbers.size_bytes(), 0));
    else
      summary->distinct_capped = true;
  }

  void Finish(FeatureSummary* summary) const {
    const auto numbers = static_cast<double>(summary->values * vector_.dimension);
    if (numbers > 0) summary->mean = sum_ / numbers;
    summary->distinct = static_cast<int64_t>(seen_.size());
  }

 private:
  const DenseVector vector_;
  std::unordered_set<uint64_t> seen_;
  double sum_ = 0;
};

// The dense features of a dataset: numbers, and vectors as one feature each.
class DenseCounters {
 public:
  DenseCounters(const DatasetSchema& schema, std::vector<FeatureSummary>* features) {
    auto vector = schema.vectors.begin();
    for (size_t d = 0; d < schema.dense.size();) {
      const bool is_vector = vector != schema.vectors.end() && vector->first == d;
      FeatureSummary& feature = features->emplace_back();
      feature.name = is_vector ? vector->name : schema.dense[d];
      feature.kind = is_vector ? "vector" : "dense";
      feature.dimension = is_vector ? vector->dimension : 0;
      // Version 1 had no transforms.
      fills_.push_back(!schema.dense_transforms.empty() &&
                       schema.dense_transforms[d].starts_with("fill:"));
      if (is_vector)
        vectors_.emplace_back(features->size() - 1, *vector);
      else
        numbers_.push_back({features->size() - 1, d, {}});
      d += is_vector ? static_cast<size_t>((vector++)->dimension) : 1;
    }
  }

  size_t size() const { return fills_.size(); }

  // `dense`: the numbers of a row.
  void Add(const float* dense, float label, std::vector<FeatureSummary>* features) {
    for (Number& number : numbers_)
      number.counter.Add(dense[number.column], label, &(*features)[number.feature]);
    for (auto& [feature, counter] : vectors_) counter.Add(dense, &(*features)[feature]);
  }

  void Finish(size_t num_top, std::vector<FeatureSummary>* features) const {
    for (const Number& number : numbers_)
      number.counter.Finish(num_top, &(*features)[number.feature]);
    for (const auto& [feature, counter] : vectors_) counter.Finish(&(*features)[feature]);
    for (size_t f = 0; f < fills_.size(); ++f)
      if (fills_[f]) (*features)[f].missing = -1;
  }

 private:
  struct Number {
    size_t feature, column;
    DenseCounter counter;
  };
  std::vector<Number> numbers_;
  std::vector<std::pair<size_t, VectorCounter>> vectors_;
  std::vector<bool> fills_;  // by feature: nothing says which rows were missing
};

class IdCounter {
 public:
  void Add(const FeatureIds& ids, const std::vector<float>& labels, FeatureSummary* summary) {
    summary->values += static_cast<int64_t>(ids.values.size());
    for (size_t i = 0; i < labels.size(); ++i) {
      const size_t begin = ids.one_hot() ? i : static_cast<size_t>(ids.offsets[i]);
      const size_t end = ids.one_hot() ? i + 1 : static_cast<size_t>(ids.offsets[i + 1]);
      summary->missing += begin == end;
      for (size_t at = begin; at < end; ++at) counts_[ids.values[at]].Add(labels[i]);
    }
  }

  void Finish(size_t num_top, const ValueNames& names, FeatureSummary* summary) const {
    std::vector<std::pair<int64_t, Count>> seen;
    for (const auto& [id, count] : counts_) {
      if (id == Vocabulary::kMissing) {
        summary->missing += count.rows;
      } else {
        seen.emplace_back(id, count);
        summary->distinct += !names.IsUnseen(id);
      }
    }
    for (const auto& [id, count] : MostFrequent(std::move(seen), num_top))
      summary->top.push_back(MakeTop(names.Shown(id), count));
  }

 private:
  std::unordered_map<int64_t, Count> counts_;  // by id
};

}  // namespace

DatasetSummary InspectDataset(const Dataset& dataset, size_t num_top, const StopFunction& stop) {
  const DatasetSchema& schema = dataset.schema();
  const DatasetManifest manifest = ReadManifest(dataset.directory());
  const size_t num_dense = schema.dense.size();
  DatasetSummary summary;
  DenseCounters dense(schema, &summary.features);
  std::vector<IdCounter> ids(schema.categorical.size());
  for (const CategoricalFeature& feature : schema.categorical) {
    summary.features.emplace_back();
    summary.features.back().name = feature.name;
    summary.features.back().kind = feature.multi_hot ? "multi-hot" : "one-hot";
    summary.features.back().num_embeddings = feature.num_embeddings;
    summary.features.back().vocabulary = manifest.features.at(feature.name).vocabulary;
  }

  LabelMean labels;
  Batch batch;
  std::vector<int64_t> rows;
  for (int64_t begin = 0; begin < dataset.num_rows(); begin += kRowsPerRead) {
    ThrowIfStopped(stop);
    rows.resize(static_cast<size_t>(std::min(kRowsPerRead, dataset.num_rows() - begin)));
    std::iota(rows.begin(), rows.end(), begin);
    dataset.Read(rows, &batch);
    batch.label.resize(rows.size());  // of unlabelled rows: 0
    for (size_t i = 0; i < rows.size(); ++i) {
      labels.Add(batch.label[i]);
      dense.Add(batch.dense.data() + i * num_dense, batch.label[i], &summary.features);
    }
    for (size_t f = 0; f < ids.size(); ++f)
      ids[f].Add(batch.categorical[f], batch.label, &summary.features[dense.size() + f]);
  }

  summary.rows = dataset.num_rows();
  if (summary.rows > 0) summary.label_mean = labels.mean();
  dense.Finish(num_top, &summary.features);
  for (size_t f = 0; f < ids.size(); ++f)
    ids[f].Finish(num_top, ValueNames(dataset, f), &summary.features[dense.size() + f]);
  return summary;
}

}  // namespace renzan
