#pragma once

// What the ids of a categorical feature stand for, for people who read them.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "renzan/data/dataset/dataset.h"

namespace renzan {

class ValueNames {
 public:
  // Reads the vocabulary of schema().categorical[feature], where it has one.
  ValueNames(const Dataset& dataset, size_t feature);

  // The value of the input: the id itself where the input had ids, "" where it was missing. Nothing
  // if it is unknown: of a hashed value, and of one without an id of its own.
  std::optional<std::string> Value(int64_t id) const;
  // The same for a table: "(missing)", "(other)"; "id 17" if it is unknown.
  std::string Label(int64_t id) const;

  // Whether ids are all that is known: values were hashed.
  bool are_hashed() const { return kind_ == Kind::kHashed; }
  // Whether the input had ids.
  bool are_ids() const { return kind_ == Kind::kIds; }

 private:
  enum class Kind { kIds, kHashed, kNamed } kind_;
  std::vector<std::string> values_;  // of id Vocabulary::kFirstOwn first
};

}  // namespace renzan
