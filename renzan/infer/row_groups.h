#pragma once

// By what rows of a dataset are grouped for group AUC: by the ids of a categorical feature, or by
// the texts of a key. Thread-safe once made.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "renzan/base/error.h"
#include "renzan/data/batch.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/data/key_groups.h"
#include "renzan/infer/for_each_slice.h"

namespace renzan {

// How groups were asked for, for errors.
struct GroupRequest {
  std::string key;                    // "--group-by"
  ErrorCode code;                     // if rows cannot be grouped so
  const Dataset* training = nullptr;  // the training data, if they are at hand
};

// Throws request.code unless rows can be grouped by `name`: a key of the dataset, whose texts are
// the groups, whatever else the column is, or a categorical feature with one id a row.
void CheckCanGroup(const std::string& name, const Dataset& dataset, const GroupRequest& request);

class RowGroups {
 public:
  // Of these rows. Throws as CheckCanGroup() does, and kData if a key's files are corrupt.
  RowGroups(const std::string& name, const Dataset& dataset, RowRange rows,
            const GroupRequest& request);

  // The groups of the first `count` rows of `batch`, which are those from row `first` of the
  // dataset on. The batch or this object holds them.
  std::span<const int64_t> Of(int64_t first, int64_t count, const Batch& batch) const;

  // Of a key; null for a feature.
  const KeyGroups* key() const { return key_ ? &*key_ : nullptr; }
  // The categorical feature, unless there is a key.
  size_t feature() const { return feature_; }
  // The group of all values that the feature's vocabulary lacks, if it has one.
  std::optional<int64_t> unseen() const { return unseen_; }
  // What evaluations that are compared must be grouped by alike.
  const std::string& meaning() const { return meaning_; }

 private:
  std::optional<KeyGroups> key_;
  size_t feature_ = 0;
  std::optional<int64_t> unseen_;
  std::string meaning_;
};

// What to do about `unseen` of so many rows of the dataset, which are in the group of unseen values
// of the feature `name`; "" if it is not the most of them.
std::string UnseenGroupAdvice(const std::string& name, const Dataset& dataset, int64_t unseen,
                              int64_t rows);

}  // namespace renzan
