#include "renzan/data/dataset/dataset_writer.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/sha256.h"
#include "renzan/data/dataset/block_checksums.h"
#include "renzan/data/dataset/dataset_staging.h"
#include "renzan/data/dataset/label_value.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/dataset/npy.h"
#include "renzan/data/dataset/shard_writers.h"

namespace renzan {
namespace {

constexpr size_t kRowsMappedAtOnce = 4096;

size_t ReadFully(ByteReader& reader, char* out, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const size_t got = reader.Read(out + done, bytes - done);
    if (got == 0) break;
    done += got;
  }
  return done;
}

void Replace(const std::string& path, const std::string& by) {
  if (std::rename(by.c_str(), path.c_str()) != 0)
    FailErrno(errno, fmt::format("cannot replace {}", path));
}

class WeightCounter {
 public:
  void Add(float weight, WeightSummary* all) {
    all->min = count_ == 0 ? weight : std::min<double>(all->min, weight);
    all->max = count_ == 0 ? weight : std::max<double>(all->max, weight);
    sum_ += weight;
    all->mean = sum_ / static_cast<double>(++count_);
  }

 private:
  int64_t count_ = 0;
  double sum_ = 0;
};

// Appends ids in the writer's type.
void AppendIds(std::span<const int64_t> ids, NpyWriter* writer, std::vector<int32_t>* narrowed) {
  if (writer->type() == NpyType::kInt64) return writer->Append(ids.data(), std::ssize(ids));
  narrowed->assign(ids.begin(), ids.end());
  writer->Append(narrowed->data(), std::ssize(ids));
}

}  // namespace

struct DatasetWriter::Impl {
  DatasetWriterOptions options;
  DatasetStaging staged;
  DatasetManifest manifest;
  DatasetSchema schema;
  StoredColumns columns;
  std::unique_ptr<ShardWriters> shard;
  WeightCounter weights;                   // of samples
  std::vector<WeightCounter> bag_weights;  // by multi-hot feature
  // One of schema.labels(), and what the manifest counts of it.
  struct CountedLabel {
    DatasetLabel label;
    int64_t* rows;
    int64_t* positive_rows;                // null: it is a number
    std::optional<NumberCounter> numbers;  // if it is one
  };
  std::vector<CountedLabel> labels;
  std::vector<int32_t> narrowed;        // of one row or bag
  std::vector<int64_t> one_hot_limits;  // num_embeddings of the one-hot features
  std::vector<std::string> other_files;

  Impl(const std::string& directory, const DatasetSchema& the_schema, DatasetWriterOptions opts)
      : options(std::move(opts)),
        staged(directory),
        schema(the_schema),
        columns(schema),
        bag_weights(columns.multi_hot.size()) {
    for (const size_t feature : columns.one_hot)
      one_hot_limits.push_back(schema.categorical[feature].num_embeddings);
  }

  // Whether files change once all rows are known.
  bool changes_at_end() const { return options.map_ids_at_end || !options.dense_at_end.empty(); }
  const std::string& NameOf(size_t feature) const { return schema.categorical[feature].name; }

  std::string FolderOf(size_t index) const { return staged.prefix() + ShardName(index); }
  std::string ShardFolder() const {
    return fmt::format("{}/{}", staged.directory(), FolderOf(manifest.shards.size()));
  }

  void OpenShard() {
    // With more than five digits the folder names would no longer sort in row order.
    if (manifest.shards.size() >= 100'000)
      Fail(ErrorCode::kUsage, "more than 100000 shards: use more than {} per shard",
           Counted(options.shard_rows, "row"));
    const std::string folder = ShardFolder();
    CreateDirectories(folder);
    shard = std::make_unique<ShardWriters>(folder, schema, columns, options);
  }

  void CloseFile(NpyWriter& writer, const std::string& name, ShardEntry& entry) {
    writer.Close();
    FileEntry& file = entry.files[name];
    file.dtype = NpyTypeName(writer.type());
    file.shape = writer.shape();
  }

  // Keys are no part of the shard's entry, on which fingerprints depend.
  void CloseKeyFile(NpyWriter& writer, const std::string& folder, const std::string& name) {
    writer.Close();
    manifest.key_files[fmt::format("{}/{}", folder, name)] = {
        NpyTypeName(writer.type()), writer.shape(), Sha256OfFile(writer.path())};
  }

  // Records the checksums of a shard's completed files and writes their block checksums.
  static void DigestShard(const std::string& folder, ShardEntry& entry) {
    const std::string path = fmt::format("{}/{}", folder, kBlockChecksumsFile);
    NpyWriter writer(path, NpyType::kUint64);
    for (auto& [name, file] : entry.files) {
      const FileDigest digest = DigestFile(fmt::format("{}/{}", folder, name));
      file.sha256 = digest.sha256;
      writer.Append(digest.blocks.data(), static_cast<int64_t>(digest.blocks.size()));
    }
    writer.Close();
    entry.files[kBlockChecksumsFile] = {NpyTypeName(writer.type()), writer.shape(),
                                        Sha256OfFile(path)};
  }

  void CloseShard() {
    ShardEntry entry;
    entry.rows = shard->rows();
    if (shard->label) CloseFile(*shard->label, "label.npy", entry);
    if (shard->further_labels) CloseFile(*shard->further_labels, kFurtherLabelsFile, entry);
    CloseFile(shard->dense, "dense.npy", entry);
    if (shard->weight) CloseFile(*shard->weight, kWeightFile, entry);
    if (shard->unscaled) shard->unscaled->Close();
    CloseFile(shard->ids, "ids.npy", entry);
    for (size_t i = 0; i < columns.wide.size(); ++i)
      CloseFile(shard->wide_ids[i], FeatureFile(NameOf(columns.wide[i]), "ids"), entry);
    for (size_t i = 0; i < columns.multi_hot.size(); ++i) {
      const std::string& name = NameOf(columns.multi_hot[i]);
      CloseFile(shard->jagged[i].values, FeatureFile(name, "values"), entry);
      CloseFile(shard->jagged[i].offsets, FeatureFile(name, "offsets"), entry);
      if (auto& weights = shard->jagged[i].weights)
        CloseFile(*weights, FeatureFile(name, "weights"), entry);
    }
    const std::string folder = FolderOf(manifest.shards.size());
    for (size_t i = 0; i < options.keys.size(); ++i) {
      CloseKeyFile(shard->keys[i].text, folder, FeatureFile(options.keys[i], "key"));
      CloseKeyFile(shard->keys[i].at, folder, FeatureFile(options.keys[i], "key_at"));
    }
    shard.reset();
    if (!changes_at_end()) DigestShard(ShardFolder(), entry);
    manifest.rows += entry.rows;
    manifest.shards[folder] = std::move(entry);
    if (!changes_at_end()) staged.Upload(folder);
  }

  // Rewrites a file of ids; `map_of_column[c]` maps column c of its rows, unless it is empty. Reads
  // in pieces: mapping the whole file would count as memory use.
  void MapFile(const std::string& path, std::vector<int64_t> columns,
               const std::vector<const std::vector<int32_t>*>& map_of_column) const {
    const std::string mapped = ParentDirectory(path) + "/mapped.tmp";
    NpyWriter writer(mapped, NpyType::kInt32, std::move(columns));
    const std::unique_ptr<ByteReader> old = OpenInput(path, options.stop);
    std::vector<int32_t> piece(map_of_column.size() * kRowsMappedAtOnce);
    char header[kNpyHeaderBytes];
    CHECK(ReadFully(*old, header, sizeof header) == sizeof header);
    for (;;) {
      const size_t bytes =
          ReadFully(*old, reinterpret_cast<char*>(piece.data()), piece.size() * sizeof(int32_t));
      const size_t rows = bytes / sizeof(int32_t) / map_of_column.size();
      if (rows == 0) break;
      int32_t* id = piece.data();
      for (size_t row = 0; row < rows; ++row) {
        for (const std::vector<int32_t>* map : map_of_column) {
          if (!map->empty()) *id = map->at(static_cast<size_t>(*id));
          ++id;
        }
      }
      writer.Append(piece.data(), static_cast<int64_t>(rows));
    }
    writer.Close();
    Replace(path, mapped);
  }

  // Rewrites dense.npy with the features of dense_at_end.
  void ScaleShard(const std::string& folder, const Scale& scale, const SeeDense& see_dense) const {
    const std::string path = folder + "/dense.npy", scaled = path + ".scaled";
    const size_t num_dense = schema.dense.size(), num_unscaled = options.dense_at_end.size();
    NpyWriter writer(scaled, NpyType::kFloat32, {std::ssize(schema.dense)});
    const std::unique_ptr<ByteReader> old = OpenInput(path, options.stop);
    const std::unique_ptr<ByteReader> numbers = OpenInput(folder + kUnscaledFile, options.stop);
    char header[kNpyHeaderBytes];
    CHECK(ReadFully(*old, header, sizeof header) == sizeof header);
    CHECK(ReadFully(*numbers, header, sizeof header) == sizeof header);
    std::vector<float> row(num_dense);
    std::vector<double> unscaled(num_unscaled);
    const auto read = [](ByteReader& reader, auto& values) {
      const size_t bytes = values.size() * sizeof(values[0]);
      return ReadFully(reader, reinterpret_cast<char*>(values.data()), bytes) == bytes;
    };
    while (read(*old, row)) {
      CHECK(read(*numbers, unscaled));
      for (size_t i = 0; i < num_unscaled; ++i)
        row[options.dense_at_end[i]] = scale(i, unscaled[i]);
      if (see_dense) see_dense(row);
      writer.Append(row.data(), 1);
    }
    writer.Close();
    Replace(path, scaled);
    if (std::remove((folder + kUnscaledFile).c_str()) != 0)
      FailErrno(errno, fmt::format("cannot remove {}{}", folder, kUnscaledFile));
  }

  void MapIds(const std::string& folder, const std::vector<std::vector<int32_t>>& id_maps) const {
    std::vector<const std::vector<int32_t>*> maps;
    for (const size_t f : columns.narrow) maps.push_back(&id_maps[f]);
    if (!maps.empty()) MapFile(folder + "/ids.npy", {std::ssize(columns.narrow)}, maps);
    for (const size_t f : columns.multi_hot)
      if (!schema.categorical[f].has_wide_ids())
        MapFile(fmt::format("{}/{}", folder, FeatureFile(NameOf(f), "values")), {}, {&id_maps[f]});
  }

  void AddLabel(const DatasetLabel& label) {
    const auto further = manifest.further_label_entries.find(label.name);
    const bool is_first = further == manifest.further_label_entries.end();
    CountedLabel counted{
        .label = label,
        .rows = is_first ? &manifest.labelled_rows : &further->second.labelled_rows,
        .positive_rows = is_first ? &manifest.positive_rows : &further->second.positive_rows,
        .numbers = std::nullopt};
    if (label.is_number()) {
      counted.positive_rows = nullptr;
      counted.numbers.emplace(&manifest.number_labels[label.name]);
    }
    labels.push_back(std::move(counted));
  }

  void CheckLabels(float first, std::span<const float> further) const {
    bool is_labelled = labels.empty();
    for (size_t i = 0; i < labels.size(); ++i) {
      const CountedLabel& each = labels[i];
      const float value = i == 0 ? first : further[i - 1];
      if (!IsLabel(each.label, value))
        Fail(ErrorCode::kData, "row {}: label '{}' {}", manifest.rows + shard->rows(),
             each.label.name, WhyNoLabel(each.label, value));
      is_labelled |= !std::isnan(value);
    }
    if (!is_labelled)
      Fail(ErrorCode::kData, "row {} has none of its labels", manifest.rows + shard->rows());
  }

  void CountLabels(float first, std::span<const float> further) {
    for (size_t i = 0; i < labels.size(); ++i) {
      CountedLabel& each = labels[i];
      const float value = i == 0 ? first : further[i - 1];
      if (std::isnan(value)) continue;
      ++*each.rows;
      if (each.numbers)
        each.numbers->Add(value);
      else
        *each.positive_rows += value == 1.0f;
    }
  }

  void AppendWeight(float weight) {
    const int64_t row = manifest.rows + shard->rows();
    if (!std::isfinite(weight) || weight < 0)
      Fail(ErrorCode::kData, "row {}: weight '{}' is {}, not a finite number from 0 on", row,
           schema.weight, weight);
    shard->weight->AppendValue(weight);
    weights.Add(weight, &manifest.weight);
  }

  // Of the i-th multi-hot feature's bag.
  void AppendBagWeights(size_t i, std::span<const float> of_bag) {
    const std::string& name = NameOf(columns.multi_hot[i]);
    for (const float weight : of_bag) {
      if (!std::isfinite(weight))
        Fail(ErrorCode::kData, "row {}: feature '{}' has the weight {}, not a finite number",
             manifest.rows + shard->rows(), name, weight);
      bag_weights[i].Add(weight, &manifest.features.at(name).weights);
    }
    shard->jagged[i].weights->Append(of_bag.data(), std::ssize(of_bag));
  }

  void CheckOneHot(std::span<const int64_t> ids) const {
    bool is_bad = false;
    for (size_t i = 0; i < ids.size(); ++i)
      is_bad |= static_cast<uint64_t>(ids[i]) >= static_cast<uint64_t>(one_hot_limits[i]);
    if (!is_bad) return;
    for (size_t i = 0; i < ids.size(); ++i) CheckId(columns.one_hot[i], ids[i]);
  }

  void AppendOneHot(std::span<const int64_t> ids) {
    if (columns.wide.empty()) {
      narrowed.assign(ids.begin(), ids.end());
    } else {
      narrowed.clear();
      auto wide = shard->wide_ids.begin();
      for (size_t i = 0; i < ids.size(); ++i) {
        if (schema.categorical[columns.one_hot[i]].has_wide_ids())
          (wide++)->AppendValue(ids[i]);
        else
          narrowed.push_back(static_cast<int32_t>(ids[i]));
      }
    }
    shard->ids.Append(narrowed.data(), 1);
  }

  void CheckId(size_t feature, int64_t id) const {
    const int64_t limit = schema.categorical[feature].num_embeddings;
    if (id < 0 || id >= limit) [[unlikely]]
      Fail(ErrorCode::kData, "row {}: feature '{}' has id {}, outside [0, {})",
           manifest.rows + shard->rows(), NameOf(feature), id, limit);
  }
};

DatasetWriter::DatasetWriter(const std::string& directory, const DatasetSchema& schema,
                             DatasetWriterOptions options) {
  CheckSchema(schema);
  CheckKeys(options.keys, schema);
  if (options.shard_rows < 1)
    Fail(ErrorCode::kUsage, "a shard needs at least one row, not {}", options.shard_rows);
  impl_ = std::make_unique<Impl>(directory, schema, std::move(options));
  Impl& impl = *impl_;
  impl.manifest.created_by = impl.options.created_by;
  impl.manifest.label = schema.label;
  impl.manifest.label_rule = schema.label_rule;
  impl.manifest.label_optional = schema.label_optional;
  impl.manifest.positive_rows = schema.has_labels() && !schema.first_label_is_number() ? 0 : -1;
  for (const DatasetLabel& label : schema.further_labels) {
    impl.manifest.further_labels.push_back(label.name);
    impl.manifest.further_label_entries[label.name] = {.rule = label.rule,
                                                       .optional = label.optional};
  }
  for (const DatasetLabel& label : schema.labels()) impl.AddLabel(label);
  impl.manifest.parsing = schema.parsing;
  impl.manifest.weight.name = schema.weight;
  impl.manifest.negatives_kept = schema.negatives_kept;
  impl.manifest.dense = schema.dense;
  for (const DenseVector& vector : schema.vectors)
    impl.manifest.vectors[vector.name] = {.dimension = vector.dimension};
  impl.manifest.dense_transforms = schema.dense_transforms;
  if (schema.dense_transforms.empty())
    impl.manifest.dense_transforms.assign(schema.dense.size(), "none");
  CHECK(impl.manifest.dense_transforms.size() == schema.dense.size());
  for (const CategoricalFeature& feature : schema.categorical) {
    impl.manifest.categorical.push_back(feature.name);
    impl.manifest.features[feature.name] = {.num_embeddings = feature.num_embeddings,
                                            .multi_hot = feature.multi_hot,
                                            .vocabulary = "",
                                            .unseen = 0,
                                            .table = feature.table,
                                            .max_length = feature.max_length,
                                            .weights = {.name = feature.weights}};
    if (feature.has_wide_ids()) impl.manifest.format_version = kWideIdsFormatVersion;
  }
  if (!schema.has_labels()) impl.manifest.format_version = kUnlabelledFormatVersion;
  impl.manifest.keys = impl.options.keys;
  if (!impl.options.keys.empty()) impl.manifest.format_version = kKeysFormatVersion;
  for (const CategoricalFeature& feature : schema.categorical)
    if (!feature.table.empty() || feature.max_length > 0)
      impl.manifest.format_version = kSequencesFormatVersion;
  if (!schema.further_labels.empty() || !schema.vectors.empty())
    impl.manifest.format_version = kLabelsAndVectorsFormatVersion;
  if (!schema.number_labels().empty()) impl.manifest.format_version = kNumberLabelsFormatVersion;
  for (const CategoricalFeature& feature : schema.categorical)
    if (!feature.weights.empty()) impl.manifest.format_version = kBagWeightsFormatVersion;
  if (schema.label_optional) impl.manifest.format_version = kOptionalLabelFormatVersion;
  impl.OpenShard();
}

DatasetWriter::~DatasetWriter() = default;

void DatasetWriter::Append(float label, std::span<const float> dense,
                           std::span<const int64_t> one_hot,
                           std::span<const std::vector<int64_t>> multi_hot,
                           std::span<const double> unscaled, std::optional<float> weight,
                           std::span<const std::string_view> keys,
                           std::span<const float> further_labels,
                           std::span<const std::vector<float>> bag_weights) {
  Impl& impl = *impl_;
  const StoredColumns& columns = impl.columns;
  CHECK(dense.size() == impl.schema.dense.size() && one_hot.size() == columns.one_hot.size() &&
        multi_hot.size() == columns.multi_hot.size() &&
        unscaled.size() == impl.options.dense_at_end.size() &&
        weight.has_value() == !impl.schema.weight.empty() &&
        keys.size() == impl.options.keys.size() &&
        further_labels.size() == impl.schema.further_labels.size());
  if (impl.shard->rows() == impl.options.shard_rows) {
    impl.CloseShard();
    impl.OpenShard();
  }
  impl.CheckLabels(label, further_labels);
  for (size_t d = 0; d < dense.size(); ++d)
    if (!std::isfinite(dense[d]))
      Fail(ErrorCode::kData, "row {}: dense feature '{}' is {}", rows(), impl.schema.dense[d],
           dense[d]);
  if (!impl.options.map_ids_at_end) {
    impl.CheckOneHot(one_hot);
    for (size_t i = 0; i < multi_hot.size(); ++i)
      for (const int64_t id : multi_hot[i]) impl.CheckId(columns.multi_hot[i], id);
  }
  if (weight) impl.AppendWeight(*weight);
  impl.CountLabels(label, further_labels);
  if (impl.shard->label) impl.shard->label->AppendValue(label);
  if (impl.shard->further_labels) impl.shard->further_labels->Append(further_labels.data(), 1);
  impl.shard->dense.Append(dense.data(), 1);
  if (impl.shard->unscaled) impl.shard->unscaled->Append(unscaled.data(), 1);
  impl.AppendOneHot(one_hot);
  for (size_t i = 0; i < multi_hot.size(); ++i) {
    ShardWriters::Jagged& files = impl.shard->jagged[i];
    AppendIds(multi_hot[i], &files.values, &impl.narrowed);
    files.offsets.AppendValue(files.values.rows());
    if (!files.weights) continue;
    CHECK(i < bag_weights.size() && bag_weights[i].size() == multi_hot[i].size());
    impl.AppendBagWeights(i, bag_weights[i]);
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    ShardWriters::Key& files = impl.shard->keys[i];
    files.text.Append(keys[i].data(), std::ssize(keys[i]));
    files.at.AppendValue(files.text.rows());
  }
}

int64_t DatasetWriter::rows() const {
  return impl_->manifest.rows + (impl_->shard ? impl_->shard->rows() : 0);
}

std::string DatasetWriter::vocabulary_folder() const {
  return fmt::format("{}/{}vocabulary", impl_->staged.directory(), impl_->staged.prefix());
}
DatasetManifest& DatasetWriter::manifest() { return impl_->manifest; }

std::string DatasetWriter::PathOfFile(const std::string& name) {
  impl_->other_files.push_back(impl_->staged.prefix() + name);
  return impl_->staged.directory() + "/" + impl_->other_files.back();
}

std::string DatasetWriter::FinalPathOfFile(const std::string& name) const {
  return impl_->staged.path() + "/" + impl_->staged.prefix() + name;
}

void DatasetWriter::Finish(const std::vector<std::vector<int32_t>>* id_maps, const Scale& scale,
                           const SeeDense& see_dense) {
  Complete(id_maps, scale, see_dense);
  Commit();
}

void DatasetWriter::Complete(const std::vector<std::vector<int32_t>>* id_maps, const Scale& scale,
                             const SeeDense& see_dense) {
  Impl& impl = *impl_;
  CHECK((id_maps != nullptr) == impl.options.map_ids_at_end);
  CHECK((scale != nullptr) == !impl.options.dense_at_end.empty());
  impl.CloseShard();
  if (impl.changes_at_end()) {
    for (auto& [name, entry] : impl.manifest.shards) {
      const std::string folder = fmt::format("{}/{}", impl.staged.directory(), name);
      if (id_maps != nullptr) impl.MapIds(folder, *id_maps);
      if (scale != nullptr) impl.ScaleShard(folder, scale, see_dense);
      Impl::DigestShard(folder, entry);
      impl.staged.Upload(name);
    }
  }
  CheckSchema(impl.manifest.schema());
  if (!impl.manifest.vocabulary.empty()) impl.staged.Upload(VocabularyFolder(impl.manifest));
  for (const std::string& name : impl.other_files)
    if (FileExists(impl.staged.directory() + "/" + name)) impl.staged.UploadFile(name);
}

void DatasetWriter::Commit() {
  impl_->staged.Commit(kDatasetManifestName, ManifestText(impl_->manifest));
}

}  // namespace renzan
