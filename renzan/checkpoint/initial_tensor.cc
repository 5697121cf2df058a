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
  if (!parts || parts->block.row_blocks < 1 ||
      static_cast<uint32_t>(parts->block.row_blocks) > kMostRowStride || !IsFloat(whole_.dtype) ||
      whole_.shape.empty() || whole_.shape.size() > 2)
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
  const auto draw = [&](int64_t row, std::span<float> values) {
    DrawInitialRows(initial_,
                    {.first_row = first_row_ + row * row_stride_,
                     .row_stride = static_cast<uint32_t>(row_stride_),
                     .first_column = first_column_,
                     .columns = columns_},
                    values);
  };
  const size_t columns = static_cast<size_t>(columns_);
  std::vector<float> partial;  // a row of which `out` has only a part
  for (size_t done = 0; done < out.size();) {
    const int64_t element = first_element + static_cast<int64_t>(done);
    const size_t column = static_cast<size_t>(element % columns_), left = out.size() - done;
    size_t size = left - left % columns;
    if (column == 0 && size > 0) {
      draw(element / columns_, out.subspan(done, size));
    } else {
      size = std::min(columns - column, left);
      partial.resize(columns);
      draw(element / columns_, partial);
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
