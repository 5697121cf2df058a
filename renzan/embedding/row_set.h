#pragma once

// A set of rows of one embedding table, one bit each. Add() may be called concurrently; no other
// function may run at the same time.

#include <cstdint>
#include <span>
#include <vector>

namespace renzan {

class RowSet {
 public:
  RowSet() = default;
  explicit RowSet(int64_t num_rows);

  void Add(int64_t row);
  void AddAll(const RowSet& other);  // a set of the same table
  bool Contains(int64_t row) const {
    return (words_[static_cast<size_t>(row >> 6)] >> (row & 63) & 1) != 0;
  }
  // Whether any of rows [begin, end) is in it.
  bool ContainsAny(int64_t begin, int64_t end) const;

  int64_t size() const;                            // counts
  int64_t SizeOfUnion(const RowSet& other) const;  // a set of the same table; counts
  int64_t num_rows() const { return num_rows_; }
  std::vector<int32_t> Rows() const;  // ascending

 private:
  int64_t num_rows_ = 0;
  std::vector<uint64_t> words_;
};

}  // namespace renzan
