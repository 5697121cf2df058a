#include "renzan/data/dataset/dataset_writer.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <deque>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/sha256.h"
#include "renzan/data/dataset/block_checksums.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/dataset/npy.h"

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

// The open files of the current shard.
struct ShardFiles {
  NpyWriter label, dense, ids;
  struct Jagged {
    NpyWriter values, offsets;

    Jagged(const std::string& folder, const std::string& feature)
        : values(fmt::format("{}/{}", folder, FeatureFile(feature, "values")), NpyType::kInt32),
          offsets(fmt::format("{}/{}", folder, FeatureFile(feature, "offsets")), NpyType::kInt64) {
      offsets.AppendValue(int64_t{0});
    }
  };
  std::deque<Jagged> jagged;  // files do not move

  ShardFiles(const std::string& folder, int64_t num_dense, int64_t num_one_hot,
             const std::vector<std::string>& multi_hot)
      : label(folder + "/label.npy", NpyType::kFloat32),
        dense(folder + "/dense.npy", NpyType::kFloat32, {num_dense}),
        ids(folder + "/ids.npy", NpyType::kInt32, {num_one_hot}) {
    for (const std::string& name : multi_hot) jagged.emplace_back(folder, name);
  }
};

}  // namespace

struct DatasetWriter::Impl {
  DatasetWriterOptions options;
  StagedDirectory staged;
  DatasetManifest manifest;
  DatasetSchema schema;
  std::vector<size_t> one_hot, multi_hot;  // positions in schema.categorical
  std::vector<std::string> multi_hot_names;
  std::vector<uint32_t> one_hot_limits;
  std::unique_ptr<ShardFiles> shard;

  Impl(const std::string& directory, const DatasetSchema& the_schema, DatasetWriterOptions opts)
      : options(std::move(opts)), staged(directory), schema(the_schema) {}

  std::string ShardFolder() const {
    return fmt::format("{}/{}", staged.staging(), ShardName(manifest.shards.size()));
  }

  void OpenShard() {
    // With more than five digits the folder names would no longer sort in row order.
    if (manifest.shards.size() >= 100'000)
      Fail(ErrorCode::kUsage, "more than 100000 shards: use more than {} rows per shard",
           options.shard_rows);
    const std::string folder = ShardFolder();
    CreateDirectories(folder);
    shard = std::make_unique<ShardFiles>(folder, static_cast<int64_t>(schema.dense.size()),
                                         static_cast<int64_t>(one_hot.size()), multi_hot_names);
  }

  void CloseFile(NpyWriter& writer, const std::string& name, ShardEntry& entry) {
    writer.Close();
    FileEntry& file = entry.files[name];
    file.dtype = NpyTypeName(writer.type());
    file.shape = writer.shape();
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
    entry.rows = shard->label.rows();
    CloseFile(shard->label, "label.npy", entry);
    CloseFile(shard->dense, "dense.npy", entry);
    CloseFile(shard->ids, "ids.npy", entry);
    for (size_t i = 0; i < shard->jagged.size(); ++i) {
      CloseFile(shard->jagged[i].values, FeatureFile(multi_hot_names[i], "values"), entry);
      CloseFile(shard->jagged[i].offsets, FeatureFile(multi_hot_names[i], "offsets"), entry);
    }
    shard.reset();
    if (!options.map_ids_at_end) DigestShard(ShardFolder(), entry);
    manifest.rows += entry.rows;
    manifest.shards[ShardName(manifest.shards.size())] = std::move(entry);
  }

  // Rewrites a file of ids; `map_of_column[c]` maps column c of its rows, unless it is empty. Reads
  // in pieces: mapping the whole file would count as memory use.
  void MapFile(const std::string& path, std::vector<int64_t> columns,
               const std::vector<const std::vector<int32_t>*>& map_of_column) const {
    const std::string mapped = path + ".mapped";
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
    if (std::rename(mapped.c_str(), path.c_str()) != 0)
      FailErrno(errno, fmt::format("cannot replace {}", path));
  }

  void MapShard(const std::string& name, ShardEntry& entry,
                const std::vector<std::vector<int32_t>>& id_maps) {
    const std::string folder = fmt::format("{}/{}", staged.staging(), name);
    std::vector<const std::vector<int32_t>*> maps;
    for (size_t f : one_hot) maps.push_back(&id_maps[f]);
    if (!maps.empty()) MapFile(folder + "/ids.npy", {static_cast<int64_t>(one_hot.size())}, maps);
    for (size_t i = 0; i < multi_hot.size(); ++i)
      MapFile(fmt::format("{}/{}", folder, FeatureFile(multi_hot_names[i], "values")), {},
              {&id_maps[multi_hot[i]]});
    DigestShard(folder, entry);
  }

  void CheckId(size_t feature, int32_t id, uint32_t limit) const {
    if (static_cast<uint32_t>(id) >= limit) [[unlikely]]
      Fail(ErrorCode::kData, "row {}: feature '{}' has id {}, outside [0, {})",
           manifest.rows + shard->label.rows(), schema.categorical[feature].name, id, limit);
  }
};

DatasetWriter::DatasetWriter(const std::string& directory, const DatasetSchema& schema,
                             DatasetWriterOptions options) {
  CheckSchema(schema);
  if (options.shard_rows < 1)
    Fail(ErrorCode::kUsage, "a shard needs at least one row, not {}", options.shard_rows);
  impl_ = std::make_unique<Impl>(directory, schema, std::move(options));
  Impl& impl = *impl_;
  impl.manifest.created_by = impl.options.created_by;
  impl.manifest.label = schema.label;
  impl.manifest.label_rule = schema.label_rule;
  impl.manifest.dense = schema.dense;
  impl.manifest.dense_transforms = schema.dense_transforms;
  if (schema.dense_transforms.empty())
    impl.manifest.dense_transforms.assign(schema.dense.size(), "none");
  CHECK(impl.manifest.dense_transforms.size() == schema.dense.size());
  for (size_t f = 0; f < schema.categorical.size(); ++f) {
    const CategoricalFeature& feature = schema.categorical[f];
    impl.manifest.categorical.push_back(feature.name);
    impl.manifest.features[feature.name] = {feature.num_embeddings, feature.multi_hot, ""};
    if (feature.multi_hot) {
      impl.multi_hot.push_back(f);
      impl.multi_hot_names.push_back(feature.name);
    } else {
      impl.one_hot.push_back(f);
      impl.one_hot_limits.push_back(static_cast<uint32_t>(feature.num_embeddings));
    }
  }
  impl.OpenShard();
}

DatasetWriter::~DatasetWriter() = default;

void DatasetWriter::Append(float label, std::span<const float> dense,
                           std::span<const int32_t> one_hot,
                           std::span<const std::vector<int32_t>> multi_hot) {
  Impl& impl = *impl_;
  CHECK(dense.size() == impl.schema.dense.size() && one_hot.size() == impl.one_hot.size() &&
        multi_hot.size() == impl.multi_hot.size());
  if (impl.shard->label.rows() == impl.options.shard_rows) {
    impl.CloseShard();
    impl.OpenShard();
  }
  if (label != 0.0f && label != 1.0f)
    Fail(ErrorCode::kData, "row {}: label {} is not 0 or 1", rows(), label);
  for (size_t d = 0; d < dense.size(); ++d)
    if (!std::isfinite(dense[d]))
      Fail(ErrorCode::kData, "row {}: dense feature '{}' is {}", rows(), impl.schema.dense[d],
           dense[d]);
  if (!impl.options.map_ids_at_end)
    for (size_t i = 0; i < one_hot.size(); ++i)
      impl.CheckId(impl.one_hot[i], one_hot[i], impl.one_hot_limits[i]);
  for (size_t i = 0; i < multi_hot.size(); ++i) {
    const size_t feature = impl.multi_hot[i];
    const auto limit = static_cast<uint32_t>(impl.schema.categorical[feature].num_embeddings);
    if (!impl.options.map_ids_at_end)
      for (int32_t id : multi_hot[i]) impl.CheckId(feature, id, limit);
    ShardFiles::Jagged& files = impl.shard->jagged[i];
    files.values.Append(multi_hot[i].data(), static_cast<int64_t>(multi_hot[i].size()));
    files.offsets.AppendValue(files.values.rows());
  }
  impl.shard->label.AppendValue(label);
  impl.shard->dense.Append(dense.data(), 1);
  impl.shard->ids.Append(one_hot.data(), 1);
}

int64_t DatasetWriter::rows() const {
  return impl_->manifest.rows + (impl_->shard ? impl_->shard->label.rows() : 0);
}

const std::string& DatasetWriter::staging() const { return impl_->staged.staging(); }
DatasetManifest& DatasetWriter::manifest() { return impl_->manifest; }

void DatasetWriter::Finish(const std::vector<std::vector<int32_t>>* id_maps) {
  Impl& impl = *impl_;
  CHECK((id_maps != nullptr) == impl.options.map_ids_at_end);
  impl.CloseShard();
  if (id_maps != nullptr)
    for (auto& [name, entry] : impl.manifest.shards) impl.MapShard(name, entry, *id_maps);
  CheckSchema(impl.manifest.schema());
  WriteManifest(impl.staged.staging(), impl.manifest);
  impl.staged.Commit();
}

}  // namespace renzan
