#pragma once

// Tables most of whose rows have never been trained are saved sparsely: the rows that may differ
// from their initial values, and how the others begin (docs/formats/checkpoint.md).

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "renzan/base/sha256.h"
#include "renzan/checkpoint/tensor_info.h"
#include "renzan/tensor/initial_values.h"

namespace renzan {

// The values that a tensor of a table's block, weights or a state, has before training.
class InitialTensor {
 public:
  // `whole` is the tensor with all rows. Throws Error kData unless it can be one of a table.
  InitialTensor(const InitialRows& initial, TensorInfo whole);

  // Values from `first_element` (row-major), as they are stored in the tensor's type. Both ends may
  // be inside a row.
  void Read(int64_t first_element, std::span<float> out) const;
  const TensorInfo& whole() const { return whole_; }
  const InitialRows& rows() const { return initial_; }

 private:
  InitialRows initial_;
  TensorInfo whole_;
  bool is_state_ = false;
  int64_t columns_ = 1, first_column_ = 0;  // of the table
  int64_t first_row_ = 0, row_stride_ = 1;  // row r is row first_row + r * row_stride of the table
};

// The SHA-256 of all rows of a tensor of which only some are stored.
class SparseTensorHash {
 public:
  // `rows`, strictly ascending, are those stored; the span must outlive this object. When `cancel`
  // becomes true, Error kTempFail is thrown.
  SparseTensorHash(InitialTensor initial, std::span<const int32_t> rows,
                   const std::atomic<bool>* cancel = nullptr);

  // The next bytes of the stored rows, whole elements.
  void Append(std::span<const std::byte> bytes);
  // After all stored rows have been appended.
  std::string HexDigest();

 private:
  // Hashes the initial values of the rows before `row` that have not been hashed.
  void HashRowsBefore(int64_t row);

  InitialTensor initial_;
  std::span<const int32_t> rows_;
  const std::atomic<bool>* cancel_;
  size_t row_bytes_;
  size_t index_ = 0, in_row_ = 0;  // of the next byte: its row's index in rows_, its place in there
  int64_t next_row_ = 0;           // of those to be hashed
  std::vector<float> values_;
  std::vector<std::byte> encoded_;
  Sha256 hash_;
};

}  // namespace renzan
