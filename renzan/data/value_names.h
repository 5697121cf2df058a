#pragma once

// The values behind the ids of a categorical feature, for people. Thread-safe once made.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "renzan/data/dataset/dataset.h"

namespace renzan {

class ValueNames {
 public:
  // Reads the vocabulary of schema().categorical[feature], if the dataset has one for it. Throws
  // kData if it is corrupt.
  ValueNames(const Dataset& dataset, size_t feature);

  // Whether the input's values are known: ids themselves, or texts of a vocabulary. Not if they
  // were hashed.
  bool known() const { return kind_ != Kind::kHashed; }
  // Whether the input had ids.
  bool are_ids() const { return kind_ == Kind::kIds; }

  // Whether all texts are UTF-8.
  bool are_utf8() const;

  // Nothing for an id that stands for no single known value: of missing values, of all that the
  // vocabulary lacks, and of hashed ones.
  std::optional<std::string> Value(int64_t id) const;
  // Whether it is the id of all values that are rare or unseen, which stands for none of its own.
  bool IsUnseen(int64_t id) const;
  // Those of the ids from Vocabulary::kFirstOwn on; empty unless there is a vocabulary.
  const std::vector<std::string>& values() const { return values_; }
  // For a table: the value, "(missing)" or "(rare or unseen)"; the id if no value is known.
  std::string Shown(int64_t id) const;

 private:
  enum class Kind { kIds, kHashed, kNamed } kind_;
  std::vector<std::string> values_;  // of id Vocabulary::kFirstOwn first
};

}  // namespace renzan
