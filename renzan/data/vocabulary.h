#pragma once

// Maps the values of a categorical feature to ids. Id 0 always means missing (an empty value).
//
//   hash:N       id = 1 + XXH64(value, seed 0) % (N - 1); constant memory.
//   threshold:K  values seen at least K times get their own ids, from 2 on, by descending count
//                and then by first appearance; 1 is every other value. Known only after the whole
//                input has been read: until Finish() ids are provisional, and memory grows with the
//                number of distinct values.
//
// Not thread-safe.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace renzan {

struct DatasetManifest;

class Vocabulary {
 public:
  // From "hash:N" or "threshold:K". Throws kUsage.
  explicit Vocabulary(const std::string& spec);
  // The vocabulary of a feature of a finished dataset; values unknown to a threshold vocabulary
  // become 1.
  static Vocabulary FromDataset(const std::string& directory, const DatasetManifest& manifest,
                                const std::string& feature);

  int64_t Id(std::string_view value) {
    if (value.empty()) return kMissing;
    return kind_ == Kind::kHash ? HashId(value) : LookUp(value);
  }

  const std::string& spec() const { return spec_; }
  // True between the first Id() of a threshold vocabulary and Finish().
  bool provisional() const { return kind_ == Kind::kCounting; }
  // Fixes the ids; element i of the result is the final id of provisional id i.
  std::vector<int32_t> Finish();

  // These need final ids.
  int64_t num_embeddings() const;
  // The values with their own ids, id 2 first; empty with hashing.
  const std::vector<std::string>& values() const { return values_; }
  // Writes the values to files in `folder` and records them in `manifest`; does nothing with
  // hashing.
  void Save(const std::string& folder, const std::string& feature, DatasetManifest* manifest) const;

  static constexpr int64_t kMissing = 0, kRare = 1, kFirstOwn = 2;

 private:
  enum class Kind { kHash, kCounting, kFixed };

  struct ViewHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const;
  };

  int64_t HashId(std::string_view value) const;
  int64_t LookUp(std::string_view value);

  Kind kind_ = Kind::kHash;
  std::string spec_;
  uint64_t size_ = 0;  // N, or K
  std::unordered_map<std::string, int32_t, ViewHash, std::equal_to<>> ids_;
  std::vector<int64_t> counts_;  // of provisional ids
  std::vector<std::string> values_;
};

// Reads the values of `feature` (id 2 first) from a dataset; empty if it was hashed.
std::vector<std::string> ReadVocabularyValues(const std::string& directory,
                                              const DatasetManifest& manifest,
                                              const std::string& feature);

}  // namespace renzan
