#pragma once

// Rows of a dataset by the text of a key (DatasetManifest::keys): rows with one text are a group,
// whose number is the first of them in the dataset. Thread-safe once made.
//
// Takes 8 bytes for each row, and up to 96 more for each distinct text while it is made.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/data/key_column.h"

namespace renzan {

class KeyGroups {
 public:
  // Of rows [begin, end) of the dataset. Throws kData if the files of their shards are corrupt.
  KeyGroups(const Dataset& dataset, const std::string& name, int64_t begin, int64_t end);

  // The groups of `count` of these rows, from row `first` of the dataset on.
  std::span<const int64_t> Of(int64_t first, int64_t count) const;
  // The text of a group's rows, byte for byte as in the input's field.
  std::string_view Text(int64_t group) const { return texts_.Text(group); }
  int64_t size() const { return size_; }  // how many groups there are
  int64_t bytes() const { return std::ssize(groups_) * static_cast<int64_t>(sizeof(int64_t)); }

 private:
  KeyColumn texts_;
  int64_t begin_;
  std::vector<int64_t> groups_;  // of row begin_ first
  int64_t size_ = 0;
};

// What determines the texts of a key: a digest of the SHA-256 of its files.
std::string KeyFingerprint(const Dataset& dataset, const std::string& name);

}  // namespace renzan
