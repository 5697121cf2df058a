#include "renzan/data/key_groups.h"

#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/xxhash.h"
#include "renzan/data/dataset/manifest.h"

namespace renzan {
namespace {

// The first row of each text: open addressing with at least half of the slots free. Hashes only
// say where to look; texts are compared.
class FirstRows {
 public:
  explicit FirstRows(const KeyColumn& texts) : texts_(texts), slots_(16) {}

  // The first row that came with this row's text, which is the row itself if none has come.
  int64_t Of(int64_t row) {
    const std::string_view text = texts_.Text(row);
    const uint64_t hash = Xxh3OfBlock(text.data(), text.size());
    Slot& slot = Find(hash, text);
    if (slot.row >= 0) return slot.row;
    slot = {hash, row};
    if (++size_ * 2 > slots_.size()) Grow();
    return row;
  }
  int64_t size() const { return static_cast<int64_t>(size_); }

 private:
  struct Slot {
    uint64_t hash = 0;
    int64_t row = -1;  // -1: free
  };

  // That of the text, or the free one where it belongs.
  Slot& Find(uint64_t hash, std::string_view text) {
    for (size_t at = hash & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[at];
      if (slot.row < 0 || (slot.hash == hash && texts_.Text(slot.row) == text)) return slot;
    }
  }
  void Grow() {
    const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
    for (const Slot& slot : old) {
      if (slot.row < 0) continue;
      size_t at = slot.hash & (slots_.size() - 1);
      while (slots_[at].row >= 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  const KeyColumn& texts_;
  std::vector<Slot> slots_;  // a power of two
  size_t size_ = 0;
};

}  // namespace

KeyGroups::KeyGroups(const Dataset& dataset, const std::string& name, int64_t begin, int64_t end)
    : texts_(dataset, name, begin, end), begin_(begin) {
  FirstRows first(texts_);
  groups_.reserve(static_cast<size_t>(end - begin));
  for (int64_t row = begin; row < end; ++row) groups_.push_back(first.Of(row));
  size_ = first.size();
}

std::span<const int64_t> KeyGroups::Of(int64_t first, int64_t count) const {
  if (count == 0) return {};
  CHECK(begin_ <= first && first + count <= begin_ + std::ssize(groups_));
  return std::span(groups_).subspan(static_cast<size_t>(first - begin_),
                                    static_cast<size_t>(count));
}

std::string KeyFingerprint(const Dataset& dataset, const std::string& name) {
  const DatasetManifest& manifest = dataset.manifest();
  Xxh128 digest;
  for (const auto& [folder, shard] : manifest.shards)
    for (const char* part : {"key", "key_at"}) {
      const std::string file = fmt::format("{}/{}", folder, FeatureFile(name, part));
      const auto entry = manifest.key_files.find(file);
      if (entry == manifest.key_files.end())
        Fail(ErrorCode::kData, "{}/dataset.yaml: has no entry for {}", dataset.directory(), file);
      digest.Update(entry->second.sha256.data(), entry->second.sha256.size());
    }
  return digest.HexDigest();
}

}  // namespace renzan
