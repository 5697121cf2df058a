#include "renzan/data/dataset/dataset.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/log.h"
#include "renzan/data/dataset/block_checksums.h"
#include "renzan/data/dataset/cache_options.h"
#include "renzan/data/dataset/dataset_cache.h"
#include "renzan/data/dataset/fingerprint.h"
#include "renzan/data/dataset/label_value.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/dataset/shard_files.h"
#include "renzan/storage/in_parallel.h"
#include "renzan/storage/storage.h"

namespace renzan {
namespace {

// Shuffled rows are scattered, so they are prefetched this many rows ahead.
constexpr size_t kRowsAhead = 8;

template <typename T>
void Prefetch(const T* first, size_t n) {
  constexpr size_t kLine = 64;
  const char* const begin = reinterpret_cast<const char*>(first);
  for (size_t byte = 0; byte < n * sizeof(T); byte += kLine) __builtin_prefetch(begin + byte);
  if (n > 0) __builtin_prefetch(first + n - 1);
  asm volatile("");  // otherwise GCC removes calls of a function that only prefetches
}

}  // namespace

struct Dataset::Impl {
  std::string directory;
  DatasetOptions options;
  DatasetManifest manifest;
  DatasetSchema schema;
  std::optional<BayesOptimal> bayes_optimal;
  std::string fingerprint;
  // Positions in schema.categorical: one-hot features in ids.npy, others, and multi-hot ones.
  std::vector<size_t> one_hot, wide, multi_hot;
  std::vector<DatasetShard> shards;
  std::vector<int64_t> first_rows;  // of shards
  std::unique_ptr<DatasetCache> cache;
  std::map<std::string, size_t> cached_files;  // "shard-00000/ids.npy"

  void OpenCache();
  const std::string& NameOf(size_t feature) const { return schema.categorical[feature].name; }
  bool has_weights() const { return !manifest.weight.name.empty(); }

  void OpenShard(const std::string& name, const ShardEntry& entry, int64_t first_row) {
    DatasetShard shard;
    if (!cache) {
      shard = OpenArrays(name, entry, first_row);
    } else {
      std::vector<size_t> files;
      for (const auto& [file, ignored] : entry.files)
        if (file != kBlockChecksumsFile) files.push_back(cached_files.at(name + "/" + file));
      cache->ReadHeaders(files, [&] { shard = OpenArrays(name, entry, first_row); });
      cache->AddShard(CachedShardOf(shard, entry.rows));
    }
    shards.push_back(std::move(shard));
  }

  DatasetShard OpenArrays(const std::string& name, const ShardEntry& entry, int64_t first_row) {
    const int64_t rows = entry.rows;
    DatasetShard shard;
    shard.folder = fmt::format("{}/{}", directory, name);
    shard.first_row = first_row;
    std::optional<ShardChecksums> checksums;
    if (!cache && options.verify_blocks && manifest.format_version > 1)
      checksums.emplace(shard.folder, entry);
    const auto open = [&](const std::string& file, NpyType type, std::vector<int64_t> shape) {
      const auto cached = cached_files.find(name + "/" + file);
      const bool is_cached = cached != cached_files.end();
      const std::string path =
          is_cached ? cache->LocalPath(cached->second) : fmt::format("{}/{}", shard.folder, file);
      CheckedArray checked{
          .array = OpenArray(directory, name, entry, file, type, std::move(shape), path),
          .blocks = {},
          .element_bytes = static_cast<size_t>(NpyTypeBytes(type)),
          .cached_file = is_cached ? cached->second : 0};
      if (checksums)
        checked.blocks = BlockVerifier(path, checked.array.file_bytes(),
                                       checksums->Of(file, checked.array.file_bytes()));
      checked.blocks.Need(0, checked.array.data_offset());
      return checked;
    };
    if (schema.has_labels()) shard.label = open("label.npy", NpyType::kFloat32, {rows});
    if (!schema.further_labels.empty()) {
      shard.further_labels =
          open(kFurtherLabelsFile, NpyType::kFloat32, {rows, std::ssize(schema.further_labels)});
      shard.further_label_data = shard.further_labels->data<float>();
    }
    shard.dense =
        open("dense.npy", NpyType::kFloat32, {rows, static_cast<int64_t>(schema.dense.size())});
    shard.ids = open("ids.npy", NpyType::kInt32, {rows, static_cast<int64_t>(one_hot.size())});
    for (const size_t f : wide)
      shard.wide_ids.push_back(
          open(FeatureFile(schema.categorical[f].name, "ids"), NpyType::kInt64, {rows}));
    for (size_t f : multi_hot) {
      const CategoricalFeature& feature = schema.categorical[f];
      const NpyType type = feature.has_wide_ids() ? NpyType::kInt64 : NpyType::kInt32;
      shard.jagged.push_back(
          {open(FeatureFile(feature.name, "values"), type, {-1}),
           open(FeatureFile(feature.name, "offsets"), NpyType::kInt64, {rows + 1}), std::nullopt});
      JaggedArray& jagged = shard.jagged.back();
      if (!feature.weights.empty())
        jagged.weights = open(FeatureFile(feature.name, "weights"), NpyType::kFloat32,
                              {jagged.values.array.num_elements()});
    }
    if (has_weights()) shard.weight = open(kWeightFile, NpyType::kFloat32, {rows});
    if (schema.has_labels()) shard.label_data = shard.label.data<float>();
    shard.dense_data = shard.dense.data<float>();
    shard.id_data = shard.ids.data<int32_t>();
    return shard;
  }

  static DatasetCache::Shard CachedShardOf(const DatasetShard& shard, int64_t rows) {
    DatasetCache::Shard cached{.first_row = shard.first_row, .rows = rows};
    const auto column = [&](const CheckedArray& array, int64_t entries) {
      return DatasetCache::Column{
          .file = array.cached_file,
          .data_offset = array.array.data_offset(),
          .row_bytes =
              static_cast<uint64_t>(array.array.num_elements() / std::max<int64_t>(entries, 1)) *
              array.element_bytes};
    };
    if (shard.label_data != nullptr) cached.columns.push_back(column(shard.label, rows));
    if (shard.further_labels) cached.columns.push_back(column(*shard.further_labels, rows));
    for (const CheckedArray* array : {&shard.dense, &shard.ids})
      cached.columns.push_back(column(*array, rows));
    for (const CheckedArray& array : shard.wide_ids) cached.columns.push_back(column(array, rows));
    if (shard.weight) cached.columns.push_back(column(*shard.weight, rows));
    const auto add_values = [&](const CheckedArray& offsets, const CheckedArray& values) {
      cached.jagged.push_back({.offsets = column(offsets, rows + 1),
                               .offsets_data = offsets.data<int64_t>(),
                               .values_file = values.cached_file,
                               .values_offset = values.array.data_offset(),
                               .value_bytes = values.element_bytes,
                               .num_values = static_cast<uint64_t>(values.array.num_elements())});
    };
    for (const JaggedArray& jagged : shard.jagged) {
      add_values(jagged.offsets, jagged.values);
      if (jagged.weights) add_values(jagged.offsets, *jagged.weights);
    }
    return cached;
  }

  const DatasetShard& ShardOf(int64_t row) const {
    if (shards.size() == 1) return shards[0];
    const auto next = std::upper_bound(first_rows.begin(), first_rows.end(), row);
    return shards[static_cast<size_t>(next - first_rows.begin()) - 1];
  }

  [[noreturn]] void FailRow(int64_t row, const std::string& feature,
                            const std::string& problem) const {
    const DatasetShard& shard = ShardOf(row);
    Fail(ErrorCode::kData, "{}: row {} (row {} of {}): '{}' {}", directory, row,
         row - shard.first_row, shard.folder, feature, problem);
  }

  // The slow path: locates the error that the fast path detected.
  [[noreturn]] void FailOneHot(std::span<const int64_t> rows, const Batch& batch) const {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (schema.has_labels()) CheckLabel(rows[i], schema.first_label(), batch.label[i]);
      for (size_t d = 0; d < schema.dense.size(); ++d) {
        const float value = batch.dense[i * schema.dense.size() + d];
        if (!std::isfinite(value))
          FailRow(rows[i], schema.dense[d], fmt::format("is {}, not a finite number", value));
      }
      for (size_t f : one_hot) CheckId(rows[i], f, batch.categorical[f].values[i]);
    }
    CHECK_MSG(false, "the fast row check found an error that the slow one does not");
  }

  void CheckLabel(int64_t row, const DatasetLabel& label, float value) const {
    if (!IsLabel(label, value)) FailRow(row, label.name, WhyNoLabel(label, value));
  }

  void CheckId(int64_t row, size_t f, int64_t id) const {
    const CategoricalFeature& feature = schema.categorical[f];
    if (id < 0 || id >= feature.num_embeddings)
      FailRow(row, feature.name,
              fmt::format("has id {}, outside [0, {})", id, feature.num_embeddings));
  }

  void ReadRows(std::span<const int64_t> rows, Batch* batch) const;
  void ReadOneHot(std::span<const int64_t> rows, Batch* batch) const;
  void ReadFurtherLabels(std::span<const int64_t> rows, Batch* batch) const;
  void ReadWeights(std::span<const int64_t> rows, std::vector<float>* weights) const;
  void ReadWide(std::span<const int64_t> rows, size_t column, FeatureIds* ids) const;
  // Appends those of the values [begin, end) of a row's bag.
  void ReadBagWeights(int64_t row, size_t jagged, size_t begin, size_t end,
                      std::vector<float>* weights) const;
  template <typename Id>
  void ReadMultiHot(std::span<const int64_t> rows, size_t jagged, FeatureIds* ids) const;
};

// Gathers row by row, in the order on disk; checks only set a flag.
void Dataset::Impl::ReadOneHot(std::span<const int64_t> rows, Batch* batch) const {
  const size_t num_dense = schema.dense.size();
  const size_t num_one_hot = one_hot.size();
  std::vector<int64_t*> out(num_one_hot);
  std::vector<uint32_t> limit(num_one_hot);
  for (size_t j = 0; j < num_one_hot; ++j) {
    std::vector<int64_t>& values = batch->categorical[one_hot[j]].values;
    values.resize(rows.size());
    out[j] = values.data();
    limit[j] = static_cast<uint32_t>(schema.categorical[one_hot[j]].num_embeddings);
  }
  const bool has_labels = schema.has_labels(), is_number = schema.first_label_is_number();
  batch->label.resize(schema.num_labels() * rows.size());
  batch->dense.resize(rows.size() * num_dense);

  bool bad = false;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + kRowsAhead < rows.size()) {
      const DatasetShard& shard = ShardOf(rows[i + kRowsAhead]);
      const auto row = static_cast<size_t>(rows[i + kRowsAhead] - shard.first_row);
      if (has_labels) Prefetch(shard.label_data + row, 1);
      Prefetch(shard.dense_data + row * num_dense, num_dense);
      Prefetch(shard.id_data + row * num_one_hot, num_one_hot);
    }
    const DatasetShard& shard = ShardOf(rows[i]);
    const auto row = static_cast<size_t>(rows[i] - shard.first_row);
    if (has_labels) {
      shard.label.Need(row, 1);
      const float label = shard.label_data[row];
      batch->label[i] = label;
      bad |= (is_number ? !IsNumberLabel(label) : label != 0.0f && label != 1.0f) &&
             !(schema.label_optional && std::isnan(label));
    }
    shard.dense.Need(row * num_dense, num_dense);
    shard.ids.Need(row * num_one_hot, num_one_hot);
    const float* const dense = shard.dense_data + row * num_dense;
    float* const dense_out = batch->dense.data() + i * num_dense;
    for (size_t d = 0; d < num_dense; ++d) {
      dense_out[d] = dense[d];
      bad |= !(std::fabs(dense[d]) <= std::numeric_limits<float>::max());
    }
    const int32_t* const ids = shard.id_data + row * num_one_hot;
    for (size_t j = 0; j < num_one_hot; ++j) {
      out[j][i] = ids[j];
      bad |= static_cast<uint32_t>(ids[j]) >= limit[j];
    }
  }
  if (bad) FailOneHot(rows, *batch);
}

void Dataset::Impl::ReadFurtherLabels(std::span<const int64_t> rows, Batch* batch) const {
  const size_t further = schema.further_labels.size(), n = rows.size();
  for (size_t i = 0; i < n; ++i) {
    const DatasetShard& shard = ShardOf(rows[i]);
    const size_t first = static_cast<size_t>(rows[i] - shard.first_row) * further;
    shard.further_labels->Need(first, further);
    for (size_t j = 0; j < further; ++j) {
      const float label = batch->label[(1 + j) * n + i] = shard.further_label_data[first + j];
      CheckLabel(rows[i], schema.further_labels[j], label);
    }
  }
}

void Dataset::Impl::ReadWeights(std::span<const int64_t> rows, std::vector<float>* weights) const {
  weights->resize(has_weights() ? rows.size() : 0);
  for (size_t i = 0; i < weights->size(); ++i) {
    const DatasetShard& shard = ShardOf(rows[i]);
    const auto row = static_cast<size_t>(rows[i] - shard.first_row);
    shard.weight->Need(row, 1);
    const float weight = (*weights)[i] = shard.weight->data<float>()[row];
    if (!(weight >= 0 && weight <= manifest.weight.max))
      FailRow(rows[i], manifest.weight.name,
              fmt::format("is {}, not a weight from 0 to {}", weight, manifest.weight.max));
  }
}

void Dataset::Impl::ReadWide(std::span<const int64_t> rows, size_t column, FeatureIds* ids) const {
  ids->values.resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const DatasetShard& shard = ShardOf(rows[i]);
    const auto row = static_cast<size_t>(rows[i] - shard.first_row);
    shard.wide_ids[column].Need(row, 1);
    ids->values[i] = shard.wide_ids[column].data<int64_t>()[row];
    CheckId(rows[i], wide[column], ids->values[i]);
  }
}

void Dataset::Impl::ReadBagWeights(int64_t row, size_t jagged, size_t begin, size_t end,
                                   std::vector<float>* weights) const {
  const CheckedArray& array = *ShardOf(row).jagged[jagged].weights;
  array.Need(begin, end - begin);
  const std::string& name = NameOf(multi_hot[jagged]);
  const WeightSummary& all = manifest.features.at(name).weights;
  for (size_t at = begin; at < end; ++at) {
    const float weight = array.data<float>()[at];
    if (!(weight >= all.min && weight <= all.max))
      FailRow(row, name,
              fmt::format("has the weight {}, not one from {} to {}", weight, all.min, all.max));
    weights->push_back(weight);
  }
}

template <typename Id>
void Dataset::Impl::ReadMultiHot(std::span<const int64_t> rows, size_t jagged,
                                 FeatureIds* ids) const {
  const size_t f = multi_hot[jagged];
  ids->values.clear();
  ids->weights.clear();
  ids->offsets.resize(rows.size() + 1);
  ids->offsets[0] = 0;
  const auto offsets_of = [&](size_t i, const DatasetShard& shard) {
    return shard.jagged[jagged].offsets.data<int64_t>() + (rows[i] - shard.first_row);
  };
  const auto prefetch_offsets = [&](size_t i) {
    if (i < rows.size()) Prefetch(offsets_of(i, ShardOf(rows[i])), 2);
  };
  // For a row whose offsets have arrived but are not checked yet.
  const auto prefetch_values = [&](size_t i) {
    if (i >= rows.size()) return;
    const DatasetShard& shard = ShardOf(rows[i]);
    shard.jagged[jagged].offsets.Need(static_cast<size_t>(rows[i] - shard.first_row), 1);
    const auto first = static_cast<size_t>(offsets_of(i, shard)[0]);
    const std::span<const Id> values = shard.jagged[jagged].values.array.values<Id>();
    if (first < values.size()) Prefetch(values.data() + first, 1);
  };
  for (size_t i = 0; i < 2 * kRowsAhead; ++i) prefetch_offsets(i);
  for (size_t i = 0; i < rows.size(); ++i) {
    prefetch_offsets(i + 2 * kRowsAhead);
    prefetch_values(i + kRowsAhead);
    const DatasetShard& shard = ShardOf(rows[i]);
    const auto& [checked_values, offsets, weights] = shard.jagged[jagged];
    const std::span<const Id> values = checked_values.array.values<Id>();
    offsets.Need(static_cast<size_t>(rows[i] - shard.first_row), 2);
    const int64_t* const offset = offsets_of(i, shard);
    if (offset[0] < 0 || offset[1] < offset[0] || offset[1] > static_cast<int64_t>(values.size()))
      FailRow(rows[i], schema.categorical[f].name,
              fmt::format("has the bag [{}, {}) of {}", offset[0], offset[1],
                          Counted(values.size(), "value")));
    const int64_t most = schema.categorical[f].max_length;
    if (most > 0 && offset[1] - offset[0] > most)
      FailRow(rows[i], schema.categorical[f].name,
              fmt::format("has a sequence of {}, but max_length is {}",
                          Counted(offset[1] - offset[0], "id"), most));
    checked_values.Need(static_cast<size_t>(offset[0]), static_cast<size_t>(offset[1] - offset[0]));
    for (int64_t at = offset[0]; at < offset[1]; ++at) {
      const Id id = values[static_cast<size_t>(at)];
      CheckId(rows[i], f, id);
      ids->values.push_back(id);
    }
    if (weights)
      ReadBagWeights(rows[i], jagged, static_cast<size_t>(offset[0]),
                     static_cast<size_t>(offset[1]), &ids->weights);
    if (ids->values.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
      Fail(ErrorCode::kData,
           "{}: feature '{}' has more than 2^31 values in one batch of {}: use smaller batches",
           directory, schema.categorical[f].name, Counted(rows.size(), "row"));
    ids->offsets[i + 1] = static_cast<int32_t>(ids->values.size());
  }
}

void Dataset::Impl::OpenCache() {
  if (manifest.format_version == 1)
    Fail(
        ErrorCode::kData,
        "{} has format version 1, without block checksums, and cannot be read from a store: import "
        "the data again",
        directory);
  std::vector<std::pair<std::string, const ShardEntry*>> entries;
  for (const auto& [name, entry] : manifest.shards) entries.emplace_back(name, &entry);
  std::vector<std::optional<ShardChecksums>> checksums(entries.size());
  InParallel(entries.size(), [&](size_t i) {
    checksums[i].emplace(fmt::format("{}/{}", directory, entries[i].first), *entries[i].second);
  });
  // Folders in a store have random names, which differ between imports of the same rows.
  Sha256 id;
  id.Update(fmt::format("{}\n", directory));
  for (const auto& [name, entry] : entries) id.Update(fmt::format("{}\n", name));
  id.Update(fingerprint);
  constexpr size_t kIdDigits = 32;
  cache = std::make_unique<DatasetCache>(
      CacheOptionsOf(options.cache, id.HexDigest().substr(0, kIdDigits)));
  for (size_t i = 0; i < entries.size(); ++i) {
    for (const auto& [file, entry] : entries[i].second->files) {
      if (file == kBlockChecksumsFile) continue;
      const std::string name = entries[i].first + "/" + file;
      cached_files[name] = cache->AddFile({.path = directory + "/" + name,
                                           .name = name,
                                           .bytes = entry.bytes(),
                                           .checksums = checksums[i]->Of(file, entry.bytes())});
    }
  }
  cache->Open();
}

Dataset::Dataset(const std::string& directory, DatasetOptions options)
    : impl_(std::make_unique<Impl>()) {
  Impl& impl = *impl_;
  impl.directory = NormalizedPath(directory);
  impl.options = options;
  impl.manifest = ReadManifest(directory);
  if (impl.manifest.format_version == 1 && options.warn)
    LogWarning(
        "{} has format version 1 without block checksums: only `renzan data verify` detects "
        "corruption; import the data again to get them",
        directory);
  impl.schema = impl.manifest.schema();
  impl.fingerprint = Fingerprint(impl.manifest);
  for (const auto& [name, bayes_optimal] : impl.manifest.generated)
    impl.bayes_optimal = bayes_optimal;
  for (size_t f = 0; f < impl.schema.categorical.size(); ++f)
    (impl.schema.categorical[f].multi_hot        ? impl.multi_hot
     : impl.schema.categorical[f].has_wide_ids() ? impl.wide
                                                 : impl.one_hot)
        .push_back(f);
  if (IsInStore(directory)) impl.OpenCache();
  int64_t first_row = 0;
  for (const auto& [name, entry] : impl.manifest.shards) {
    impl.OpenShard(name, entry, first_row);
    impl.first_rows.push_back(first_row);
    first_row += entry.rows;
  }
}

Dataset::~Dataset() = default;
Dataset::Dataset(Dataset&&) noexcept = default;
Dataset& Dataset::operator=(Dataset&&) noexcept = default;

const std::string& Dataset::directory() const { return impl_->directory; }
const DatasetSchema& Dataset::schema() const { return impl_->schema; }
int64_t Dataset::num_rows() const { return impl_->manifest.rows; }
const std::optional<BayesOptimal>& Dataset::bayes_optimal() const { return impl_->bayes_optimal; }
const std::string& Dataset::fingerprint() const { return impl_->fingerprint; }
const DatasetManifest& Dataset::manifest() const { return impl_->manifest; }
DatasetCache* Dataset::cache() const { return impl_->cache.get(); }

void Dataset::Verify() const {
  const auto check = [](const std::string& path, const FileEntry& file) {
    const std::string found = Sha256OfFile(Storage::Of(path).Fetch(path).local_path());
    if (found != file.sha256)
      Fail(ErrorCode::kData,
           "{}: SHA-256 is {}, but dataset.yaml says {}: the file has changed; "
           "restore it or import the data again",
           path, found, file.sha256);
  };
  for (const auto& [folder, shard] : impl_->manifest.shards)
    for (const auto& [name, file] : shard.files)
      check(fmt::format("{}/{}/{}", impl_->directory, folder, name), file);
  for (const auto& [name, file] : impl_->manifest.key_files)
    check(fmt::format("{}/{}", impl_->directory, name), file);
  if (const FileEntry& rows = impl_->manifest.input_rows; !rows.dtype.empty())
    check(fmt::format("{}/{}", impl_->directory, NameInDataset(impl_->manifest, kInputRowsName)),
          rows);
  for (const auto& [name, file] : impl_->manifest.vocabulary)
    check(fmt::format("{}/{}/{}", impl_->directory, VocabularyFolder(impl_->manifest), name), file);
}

void Dataset::Read(std::span<const int64_t> rows, Batch* batch) const {
  const Impl& impl = *impl_;
  for (int64_t row : rows) CHECK(row >= 0 && row < impl.manifest.rows);
  batch->size = static_cast<int64_t>(rows.size());
  batch->categorical.resize(impl.schema.categorical.size());
  if (impl.cache) {
    impl.cache->ReadRows(rows, [&] { impl.ReadRows(rows, batch); });
  } else {
    impl.ReadRows(rows, batch);
  }
}

void Dataset::Impl::ReadRows(std::span<const int64_t> rows, Batch* batch) const {
  for (size_t f : one_hot) {
    batch->categorical[f].offsets.clear();
    batch->categorical[f].weights.clear();
  }
  ReadOneHot(rows, batch);
  if (!schema.further_labels.empty()) ReadFurtherLabels(rows, batch);
  ReadWeights(rows, &batch->weight);
  for (size_t j = 0; j < wide.size(); ++j) {
    FeatureIds& ids = batch->categorical[wide[j]];
    ids.offsets.clear();
    ids.weights.clear();
    ReadWide(rows, j, &ids);
  }
  for (size_t j = 0; j < multi_hot.size(); ++j) {
    FeatureIds& ids = batch->categorical[multi_hot[j]];
    if (schema.categorical[multi_hot[j]].has_wide_ids()) {
      ReadMultiHot<int64_t>(rows, j, &ids);
    } else {
      ReadMultiHot<int32_t>(rows, j, &ids);
    }
  }
}

}  // namespace renzan
