#include "renzan/data/key_column.h"

#include <algorithm>
#include <span>

#include "renzan/base/error.h"
#include "renzan/base/utf8.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/dataset/shard_files.h"

namespace renzan {
namespace {

NpyArray Open(const Dataset& dataset, const std::string& file, NpyType type,
              const std::vector<int64_t>& shape) {
  const std::string path = fmt::format("{}/{}", dataset.directory(), file);
  const auto entry = dataset.manifest().key_files.find(file);
  if (entry == dataset.manifest().key_files.end())
    Fail(ErrorCode::kData, "{}/dataset.yaml: has no entry for {}", dataset.directory(), file);
  NpyArray array = OpenWholeArray(path, entry->second);
  if (array.type() != type || array.shape().size() != 1 ||
      (!shape.empty() && array.shape() != shape))
    Fail(ErrorCode::kData, "{}: must be a vector of {}, one for each row, but is {} {}", path,
         NpyTypeName(type), NpyTypeName(array.type()), FormatShape(array.shape()));
  return array;
}

void CheckOffsets(std::span<const int64_t> at, int64_t num_bytes, const std::string& path) {
  for (size_t i = 0; i < at.size(); ++i)
    if (at[i] < (i == 0 ? 0 : at[i - 1]) || at[i] > num_bytes)
      Fail(ErrorCode::kData, "{} is corrupt: text {} ends at byte {} of {}", path, i, at[i],
           num_bytes);
}

}  // namespace

KeyColumn::KeyColumn(const Dataset& dataset, const std::string& name, int64_t begin, int64_t end)
    : begin_(begin), end_(end) {
  int64_t first_row = 0;
  for (const auto& [folder, shard] : dataset.manifest().shards) {
    const int64_t end_row = first_row + shard.rows;
    if (first_row < end && begin < end_row) {
      const std::string at_file = fmt::format("{}/{}", folder, FeatureFile(name, "key_at"));
      shards_.push_back(
          {.first_row = first_row,
           .text = Open(dataset, fmt::format("{}/{}", folder, FeatureFile(name, "key")),
                        NpyType::kUint8, {}),
           .at = Open(dataset, at_file, NpyType::kInt64, {shard.rows + 1})});
      CheckOffsets(shards_.back().at.values<int64_t>(), shards_.back().text.num_elements(),
                   fmt::format("{}/{}", dataset.directory(), at_file));
    }
    first_row = end_row;
  }
}

std::string_view KeyColumn::Text(int64_t row) const {
  CHECK(begin_ <= row && row < end_);
  const auto next =
      std::upper_bound(shards_.begin(), shards_.end(), row,
                       [](int64_t at, const Shard& shard) { return at < shard.first_row; });
  const Shard& shard = *(next - 1);
  const int64_t* const at =
      shard.at.values<int64_t>().data() + static_cast<size_t>(row - shard.first_row);
  return {reinterpret_cast<const char*>(shard.text.values<uint8_t>().data()) + at[0],
          static_cast<size_t>(at[1] - at[0])};
}

bool KeyColumn::are_utf8() const {
  for (int64_t row = begin_; row < end_; ++row)
    if (!IsUtf8(Text(row))) return false;
  return true;
}

}  // namespace renzan
