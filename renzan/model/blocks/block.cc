#include "renzan/model/blocks/block.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/model/blocks/block_error.h"

namespace renzan {

int64_t ColumnsOf(const Shape& shape) {
  int64_t columns = 0;
  for (const FeatureVector& vector : shape) columns += vector.dim;
  return columns;
}

std::string Describe(const Shape& shape) {
  std::vector<int64_t> dims;
  for (const FeatureVector& vector : shape) dims.push_back(vector.dim);
  const std::string count = Counted(shape.size(), "vector");
  if (dims.empty()) return count;
  if (std::all_of(dims.begin(), dims.end(), [&](int64_t dim) { return dim == dims.front(); }))
    return fmt::format("{} of {}", count, dims.front());
  return fmt::format("{} of {}", count, fmt::join(dims, ", "));
}

std::vector<BlockedMatrix> BufferLayout::Make(int64_t n) const {
  std::vector<BlockedMatrix> matrices;
  for (const Buffer& buffer : buffers_)
    matrices.emplace_back(n * buffer.rows_per_sample, buffer.columns, buffer.precision);
  return matrices;
}

std::vector<AlignedBuffer> BufferLayout::MakeRows() const {
  std::vector<AlignedBuffer> rows;
  for (const int64_t columns : rows_) rows.emplace_back(static_cast<size_t>(columns));
  return rows;
}

std::vector<int64_t> BufferLayout::columns() const {
  std::vector<int64_t> columns;
  const auto width = [](Precision precision) {  // of a block
    return BlockedMatrix(0, 0, precision).block_columns();
  };
  for (const Buffer& buffer : buffers_) {
    const int64_t block = width(buffer.precision);
    const int64_t blocks = (buffer.columns + block - 1) / block;
    columns.push_back(blocks * width(precision_) * buffer.rows_per_sample);
  }
  return columns;
}

void RejectBlock(const std::string& where, const std::string& name, const std::string& what) {
  throw BlockError(where,
                   fmt::format("block {}{}{}", name, what.starts_with(':') ? "" : " ", what));
}

void BlockPlace::Reject(const std::string& what) const { RejectBlock(where, name, what); }

const Shape& BlockPlace::input() const {
  if (inputs.size() != 1) RejectInputs(inputs.empty() ? "" : ": put a concat before it");
  return inputs.front();
}

const Shape& BlockPlace::positions() const {
  const auto count = std::count_if(sequences.begin(), sequences.end(),
                                   [](const auto& sequence) { return sequence.has_value(); });
  if (inputs.size() == 1 || count == 0) return input();
  RejectInputs(count == 1 ? ": put an append before it, which adds a vector to a sequence" : "");
}

void BlockPlace::RejectInputs(const std::string& advice) const {
  Reject(fmt::format("takes one input, but has {}{}", Counted(inputs.size(), "input"), advice));
}

int64_t BlockPlace::DimOfAll(size_t input) const {
  const Shape& vectors = inputs[input];
  const auto differs = [&](const FeatureVector& each) { return each.dim != vectors.front().dim; };
  if (vectors.empty() || std::any_of(vectors.begin(), vectors.end(), differs))
    Reject(fmt::format("takes vectors of one dimension, but its input has {}", Describe(vectors)));
  return vectors.front().dim;
}

}  // namespace renzan
