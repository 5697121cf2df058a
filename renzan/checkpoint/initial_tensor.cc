#include "renzan/checkpoint/initial_tensor.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/checkpoint/block_key.h"
#include "renzan/tensor/float_codec.h"

namespace renzan {
namespace {

constexpr int64_t kInitialValuesAtOnce = 1 << 16;

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

InitialTensor::InitialTensor(const InitialRows& initial, TensorInfo whole)
    : initial_(initial), whole_(std::move(whole)) {
  const std::optional<TableTensorKey> parts = ParseTableTensorKey(whole_.key);
  if (!parts || !IsFloat(whole_.dtype) || whole_.shape.empty() || whole_.shape.size() > 2)
    Fail(ErrorCode::kData, "'{}' {} {} is not a tensor of a table", whole_.key, Name(whole_.dtype),
         ShapeText(whole_.shape));
  if (whole_.shape[0] > std::numeric_limits<int32_t>::max())
    Fail(ErrorCode::kData, "'{}' {} has more rows than a block can have", whole_.key,
         ShapeText(whole_.shape));
  is_state_ = parts->rest != ".weight";
  if (is_state_) return;
  columns_ = whole_.shape.size() == 2 ? whole_.shape[1] : 1;
  if (columns_ < 1) Fail(ErrorCode::kData, "'{}' has no columns", whole_.key);
  first_column_ = columns_ * parts->block.column_block;
  first_row_ = parts->block.row_block;
  row_stride_ = parts->block.row_blocks;
}

void InitialTensor::Read(int64_t first_element, std::span<float> out) const {
  if (is_state_) {
    std::ranges::fill(out, initial_.state);
    return;
  }
  std::vector<float> partial;
  for (size_t done = 0; done < out.size();) {
    const int64_t element = first_element + static_cast<int64_t>(done);
    const int64_t table_row = first_row_ + element / columns_ * row_stride_;
    const size_t column = static_cast<size_t>(element % columns_);
    const size_t size = std::min(static_cast<size_t>(columns_) - column, out.size() - done);
    if (static_cast<int64_t>(size) == columns_) {
      DrawInitialRow(initial_.key, initial_.bound, table_row, first_column_,
                     out.subspan(done, size));
    } else {
      partial.resize(static_cast<size_t>(columns_));
      DrawInitialRow(initial_.key, initial_.bound, table_row, first_column_, partial);
      std::copy_n(partial.begin() + static_cast<int64_t>(column), size,
                  out.begin() + static_cast<int64_t>(done));
    }
    done += size;
  }
  RoundTrip(FloatTypeOf(whole_.dtype), out);
}

SparseTensorHash::SparseTensorHash(InitialTensor initial, std::span<const int32_t> rows,
                                   const std::atomic<bool>* cancel)
    : initial_(std::move(initial)), rows_(rows), cancel_(cancel) {
  const TensorInfo& whole = initial_.whole();
  row_bytes_ =
      BytesOf(whole.dtype) * static_cast<size_t>(whole.shape.size() == 2 ? whole.shape[1] : 1);
}

void SparseTensorHash::HashRowsBefore(int64_t row) {
  const TensorInfo& whole = initial_.whole();
  const int64_t width = static_cast<int64_t>(row_bytes_ / BytesOf(whole.dtype));
  for (int64_t element = next_row_ * width; element < row * width;) {
    if (cancel_ != nullptr && *cancel_)
      Fail(ErrorCode::kTempFail, "writing a checkpoint was cancelled");
    const int64_t size = std::min(kInitialValuesAtOnce, row * width - element);
    values_.resize(static_cast<size_t>(size));
    initial_.Read(element, values_);
    encoded_.resize(static_cast<size_t>(size) * BytesOf(whole.dtype));
    Encode(FloatTypeOf(whole.dtype), values_, encoded_.data());
    hash_.Update(AsText(encoded_));
    element += size;
  }
  next_row_ = std::max(next_row_, row);
}

void SparseTensorHash::Append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    CHECK(index_ < rows_.size());
    if (in_row_ == 0) HashRowsBefore(rows_[index_]);
    const auto piece = bytes.first(std::min(row_bytes_ - in_row_, bytes.size()));
    hash_.Update(AsText(piece));
    bytes = bytes.subspan(piece.size());
    in_row_ += piece.size();
    if (in_row_ < row_bytes_) continue;
    in_row_ = 0;
    next_row_ = int64_t{rows_[index_++]} + 1;
  }
}

std::string SparseTensorHash::HexDigest() {
  CHECK(index_ == rows_.size());
  HashRowsBefore(initial_.whole().shape[0]);
  return hash_.HexDigest();
}

}  // namespace renzan
