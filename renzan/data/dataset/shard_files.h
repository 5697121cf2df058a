#pragma once

// The files of a dataset's shard, checked against its entry in dataset.yaml and, block by block
// when they are first read, against its checksums.npy; and files that are read whole.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "renzan/data/dataset/block_checksums.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/dataset/npy.h"

namespace renzan {

// One mapped file, whose blocks are verified when they are first read.
struct CheckedArray {
  NpyArray array;
  BlockVerifier blocks;  // verifies nothing for a cached file: caches hold only verified chunks
  size_t element_bytes = 1;
  size_t cached_file = 0;  // its index there

  template <typename T>
  const T* data() const {
    return array.values<T>().data();
  }
  // Call it before reading elements [begin, begin + count).
  void Need(size_t begin, size_t count) const {
    const uint64_t from = array.data_offset() + begin * element_bytes;
    blocks.Need(from, from + count * element_bytes);
  }
};

struct JaggedArray {
  CheckedArray values, offsets;
  std::optional<CheckedArray> weights;  // of the values
};

struct DatasetShard {
  std::string folder;  // for messages
  int64_t first_row = 0;
  CheckedArray label, dense, ids;
  std::optional<CheckedArray> weight, further_labels;
  std::vector<CheckedArray> wide_ids;
  std::vector<JaggedArray> jagged;
  // The same as raw pointers, for the gathers.
  const float* label_data = nullptr;          // null: the rows have no labels
  const float* further_label_data = nullptr;  // [rows, further labels]; null: there are none
  const float* dense_data = nullptr;
  const int32_t* id_data = nullptr;
};

// Maps one file after checking its entry in dataset.yaml against `shape`, and the file against its
// entry.
NpyArray OpenArray(const std::string& directory, const std::string& shard, const ShardEntry& entry,
                   const std::string& name, NpyType type, std::vector<int64_t> shape,
                   const std::string& local_path);

// Maps a file that is read whole, such as a vocabulary's, after checking it against its entry in
// dataset.yaml (kData). From a store, it is fetched first.
NpyArray OpenWholeArray(const std::string& path, const FileEntry& entry);

// The block checksums of a shard's files, concatenated in order of file names.
class ShardChecksums {
 public:
  // `folder` has the shard's checksums.npy, whose SHA-256 is verified (kData). `entry` must outlive
  // it.
  ShardChecksums(const std::string& folder, const ShardEntry& entry);

  // The checksums of one file; throws kData if there are too few.
  std::vector<uint64_t> Of(const std::string& name, uint64_t file_bytes) const;

 private:
  const std::string folder_;
  const ShardEntry& entry_;
  const std::vector<uint64_t> checksums_;
};

}  // namespace renzan
