#pragma once

// Maps the values of a categorical feature to ids. Id 0 always means missing (an empty value).
//
//   hash:N       id = 1 + XXH64(value, seed 0) % (N - 1); constant memory.
//   threshold:K  values seen at least K times get their own ids, from 2 on, by descending count
//                and then by first appearance; 1 is every other value. Known only after the whole
//                input has been read: until Finish() ids are provisional, and memory grows with the
//                number of distinct values.
//
// Later data reads row 1 of a threshold vocabulary wherever its values are new, so training data
// has to train it: see TrainUnseen.
//
// Not thread-safe.

#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "renzan/base/philox.h"

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

  // Makes a vocabulary FromDataset() provisional again; call it before Id(). Its values keep their
  // ids, and those that it lacks get the next ones by the rules of a new vocabulary, counted from
  // here on. Does nothing with hashing.
  void Grow();

  // Of a provisional vocabulary: one that gives the values of a test set provisional ids, without
  // counting them, until FinishBy().
  Vocabulary Collecting() const;

  // To be called before Id(), for a provisional vocabulary. A share of the lookups reads the row
  // for unseen values instead of their value's own, and does not count for the threshold. Without a
  // `share`, it is kUnseenShare if fewer lookups would read the row otherwise, and 0 if not. Which
  // lookups these are depends only on the seed, the feature's name, the row and the position.
  void TrainUnseen(std::optional<double> share, uint64_t seed, const std::string& feature);

  // `row` of the dataset, `position` in its bag.
  int64_t Id(std::string_view value, int64_t row, int64_t position = 0) {
    if (value.empty()) return kMissing;
    return kind_ == Kind::kHash    ? HashId(value)
           : kind_ == Kind::kFixed ? LookUp(value)
                                   : Count(value, row, position);
  }

  // Those of a feature in consecutive rows, from `row` on.
  void Ids(std::span<const std::string_view> values, int64_t row, int64_t position,
           std::span<int64_t> ids);

  const std::string& spec() const { return spec_; }
  // The share of lookups that TrainUnseen() mapped when this vocabulary was made: known after
  // Finish(), 0 before.
  double unseen_share() const { return unseen_share_; }
  // The share of lookups of values that were too rare for ids of their own when this vocabulary was
  // made or grew: known after Finish(), 0 before.
  double rare_share() const { return rare_share_; }
  // Whether it tells values that it does not know from others.
  bool knows_unseen() const { return kind_ != Kind::kHash; }
  // Whether no lookup read the row for unseen values when this vocabulary was made.
  bool unseen_is_untrained() const { return size_ == 1 && unseen_share_ == 0; }
  // True of a new or growing threshold vocabulary until Finish().
  bool provisional() const { return kind_ == Kind::kCounting; }
  // Fixes the ids; element i of the result is the final id of provisional id i.
  std::vector<int32_t> Finish();
  // Of a vocabulary made by Collecting(): the same, by the ids of the finished `training`. Adds to
  // *unseen how many lookups were of values that it does not have.
  std::vector<int32_t> FinishBy(const Vocabulary& training, int64_t* unseen) const;
  // After Grow() and Finish(): how many values it got, and how many of those before did not occur.
  int64_t added() const { return std::ssize(values_) - known_; }
  int64_t absent() const { return absent_; }

  // These need final ids.
  int64_t num_embeddings() const;
  // The values with their own ids, id 2 first; empty with hashing.
  const std::vector<std::string>& values() const { return values_; }
  // Writes the values to files in `folder` and records them in `manifest`; does nothing with
  // hashing.
  void Save(const std::string& folder, const std::string& feature, DatasetManifest* manifest) const;

  static constexpr int64_t kMissing = 0, kRare = 1, kFirstOwn = 2;
  static constexpr double kUnseenShare = 0.01;

 private:
  enum class Kind { kHash, kCounting, kFixed };

  struct ViewHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const;
  };

  int64_t HashId(std::string_view value) const;
  int64_t LookUp(std::string_view value) const;
  int64_t Count(std::string_view value, int64_t row, int64_t position);
  bool IsSampled(int64_t row, int64_t position);
  bool NeedsUnseen() const;
  // Whether value i of `counts_`, from 1 on, had its id before it was counted.
  bool WasKnown(size_t i) const { return i <= static_cast<size_t>(known_); }

  Kind kind_ = Kind::kHash;
  std::string spec_;
  uint64_t size_ = 0;              // N, or K
  uint64_t inverse_ = 0;           // of hash: 2^64 / (N - 1), rounded down
  std::vector<size_t> by_length_;  // of Ids(): places of values
  std::unordered_map<std::string, int32_t, ViewHash, std::equal_to<>> ids_;
  struct Lookups {
    int64_t all = 0, sampled = 0;  // `sampled`: of these, those that TrainUnseen chose
  };
  std::vector<Lookups> counts_;  // while counting: of value i, provisional ids 2 i and 2 i + 1
  uint64_t unseen_key_ = 0;
  struct Drawn {
    int64_t rows = -1, position = -1;  // of rows 4 * rows to 4 * rows + 3
    Philox::Block words{};
  };
  Drawn drawn_;
  double sampled_share_ = 0, unseen_share_ = 0, rare_share_ = 0;
  bool only_if_needed_ = false;
  std::vector<std::string> values_;
  int64_t known_ = 0;   // how many values it had before it grew
  int64_t absent_ = 0;  // how many of these did not occur
};

// Whether values that occurred often enough have ids of their own, and kRare is the row for unseen
// ones: true of threshold:K. With hashing, rows may be nobody's, and kRare is that of some values.
// `vocabulary`: CategoricalFeature::vocabulary.
inline bool HasUnseenRow(std::string_view vocabulary) {
  return vocabulary.starts_with("threshold:");
}

// The first id that is a value's: those before it mean missing, and unseen.
inline int64_t FirstKnownId(std::string_view vocabulary) {
  if (HasUnseenRow(vocabulary)) return Vocabulary::kFirstOwn;
  return vocabulary.starts_with("hash:") ? Vocabulary::kMissing + 1 : 0;
}

// Reads the values of `feature` (id 2 first) from a dataset; empty if it was hashed.
std::vector<std::string> ReadVocabularyValues(const std::string& directory,
                                              const DatasetManifest& manifest,
                                              const std::string& feature);

// Whether the vocabulary of `feature` continues an earlier one (or is equal to it), so that all ids
// of that one stand for the same values. `earlier`: its DatasetManifest::VocabularyIdentity. False
// unless both are vocabularies of values. The values are not copied.
bool VocabularyBeginsWith(const std::string& directory, const DatasetManifest& manifest,
                          const std::string& feature, const std::string& earlier,
                          int64_t earlier_num_embeddings);

}  // namespace renzan
