#include "renzan/data/vocabulary.h"

// Inlined, because the values are short.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <numeric>
#include <optional>
#include <span>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/philox.h"
#include "renzan/base/sha256.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/dataset/npy.h"
#include "renzan/data/dataset/shard_files.h"

namespace renzan {
namespace {

// Values that are kept in memory; each has two provisional ids.
constexpr int64_t kMaxValues = std::numeric_limits<int32_t>::max() / 2;

// Of the i-th value with an id of its own.
int32_t OwnId(size_t i) {
  return static_cast<int32_t>(Vocabulary::kFirstOwn) + static_cast<int32_t>(i);
}

// Value i is text [at[i], at[i + 1]).
struct VocabularyFiles {
  NpyArray bytes, offsets;
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.values<uint8_t>().data()),
            static_cast<size_t>(bytes.num_elements())};
  }
  std::span<const int64_t> at() const { return offsets.values<int64_t>(); }
};

// Checks them against their SHA-256; nothing for a feature without a vocabulary.
std::optional<VocabularyFiles> OpenVocabulary(const std::string& directory,
                                              const DatasetManifest& manifest,
                                              const std::string& feature) {
  const std::string& owner = manifest.VocabularyOwner(feature);
  if (!manifest.vocabulary.contains(FeatureFile(owner, "offsets"))) return std::nullopt;
  const auto open = [&](const char* part, NpyType type) {
    const std::string name = FeatureFile(owner, part);
    const std::string path = fmt::format("{}/{}/{}", directory, VocabularyFolder(manifest), name);
    const auto entry = manifest.vocabulary.find(name);
    if (entry == manifest.vocabulary.end())
      Fail(ErrorCode::kData, "{}/dataset.yaml: has no entry for {}", directory, name);
    NpyArray array = OpenWholeArray(path, entry->second);
    if (array.type() != type || array.shape().size() != 1)
      Fail(ErrorCode::kData, "{}: must be a vector of {}, but is {} {}", path, NpyTypeName(type),
           NpyTypeName(array.type()), FormatShape(array.shape()));
    return array;
  };
  VocabularyFiles files{open("values", NpyType::kUint8), open("offsets", NpyType::kInt64)};
  const std::span<const int64_t> at = files.at();
  for (size_t i = 0; i < at.size(); ++i)
    if (at[i] < (i == 0 ? 0 : at[i - 1]) || at[i] > files.bytes.num_elements())
      Fail(ErrorCode::kData, "{}: the vocabulary of '{}' is corrupt; run `renzan data verify`",
           directory, feature);
  return files;
}

// Values of at least so many bytes are hashed by code for any length, shorter ones by code for
// theirs.
constexpr size_t kLongHash = 24;

// What hashes are divided by.
struct HashDivisor {
  uint64_t divisor, inverse;  // `inverse`: 2^64 / divisor, rounded down, or 1 less
};

// The remainder, by a multiplication with the divisor's inverse, makes the id.
[[gnu::always_inline]] inline int64_t IdOfHash(uint64_t hash, HashDivisor by) {
  // The quotient is at most 2 too small.
  __extension__ using Uint128 = unsigned __int128;
  uint64_t rest = hash - static_cast<uint64_t>(Uint128{hash} * by.inverse >> 64) * by.divisor;
  // Without branches, which nobody could predict: of a rest below the divisor, the difference wraps
  // around.
  rest = std::min(rest, rest - by.divisor);
  rest = std::min(rest, rest - by.divisor);
  return static_cast<int64_t>(1 + rest);
}

// Sets the ids of the values at `places`, which all have kBytes bytes.
template <size_t kBytes>
[[gnu::flatten]] void HashEach(std::span<const std::string_view> values,
                               std::span<const size_t> places, HashDivisor by,
                               std::span<int64_t> ids) {
  for (const size_t place : places) {
    const std::string_view value = values[place];
    ids[place] =
        kBytes == 0
            ? Vocabulary::kMissing
            : IdOfHash(XXH64(value.data(), kBytes < kLongHash ? kBytes : value.size(), 0), by);
  }
}

template <size_t... kBytes>
constexpr auto HashEachTable(std::index_sequence<kBytes...>) {
  return std::array{&HashEach<kBytes>...};
}
constexpr auto kHashEach = HashEachTable(std::make_index_sequence<kLongHash + 1>());

}  // namespace

size_t Vocabulary::ViewHash::operator()(std::string_view text) const {
  return XXH64(text.data(), text.size(), 0);
}

Vocabulary::Vocabulary(const std::string& spec) : spec_(spec) {
  const size_t colon = spec.find(':');
  const std::string kind = spec.substr(0, colon);
  int64_t number = 0;
  bool good = colon != std::string::npos && (kind == "hash" || kind == "threshold");
  if (good) {
    const char* const end = spec.data() + spec.size();
    const auto [stop, error] = std::from_chars(spec.data() + colon + 1, end, number);
    good = error == std::errc() && stop == end && number >= (kind == "hash" ? 2 : 1) &&
           number <= (kind == "hash" ? kMaxEmbeddings : kMaxValues);
  }
  if (!good)
    Fail(ErrorCode::kUsage,
         "vocabulary '{}' must be hash:N with N from 2 to {} (ids per feature) or threshold:K with "
         "K at least 1 (how often a value must occur)",
         spec, kMaxEmbeddings);
  kind_ = kind == "hash" ? Kind::kHash : Kind::kCounting;
  size_ = static_cast<uint64_t>(number);
  if (kind_ == Kind::kHash) inverse_ = ~uint64_t{0} / (size_ - 1);
  if (kind_ == Kind::kCounting) counts_.resize(1);  // for missing values, which are not counted
}

Vocabulary Vocabulary::FromDataset(const std::string& directory, const DatasetManifest& manifest,
                                   const std::string& feature) {
  const FeatureEntry& entry = manifest.features.at(feature);
  if (entry.vocabulary.empty())
    Fail(ErrorCode::kData,
         "{}: feature '{}' has no vocabulary: its ids were not imported from values", directory,
         feature);
  Vocabulary vocabulary(entry.vocabulary);
  if (vocabulary.kind_ == Kind::kHash) return vocabulary;
  vocabulary.kind_ = Kind::kFixed;
  vocabulary.unseen_share_ = entry.unseen;
  vocabulary.values_ = ReadVocabularyValues(directory, manifest, feature);
  for (size_t i = 0; i < vocabulary.values_.size(); ++i)
    vocabulary.ids_.emplace(vocabulary.values_[i], OwnId(i));
  if (vocabulary.num_embeddings() != entry.num_embeddings)
    Fail(ErrorCode::kData, "{}: feature '{}' has {}, but its vocabulary has {}", directory, feature,
         Counted(entry.num_embeddings, "embedding"), Counted(vocabulary.values_.size(), "value"));
  return vocabulary;
}

void Vocabulary::Grow() {
  if (kind_ == Kind::kHash) return;
  CHECK(kind_ == Kind::kFixed);
  kind_ = Kind::kCounting;
  known_ = std::ssize(values_);
  counts_.assign(values_.size() + 1, {});
  for (auto& [value, id] : ids_) id = id - static_cast<int32_t>(kFirstOwn) + 1;
  unseen_share_ = 0;
}

Vocabulary Vocabulary::Collecting() const {
  CHECK(kind_ == Kind::kCounting);
  return Vocabulary(spec_);
}

std::vector<int32_t> Vocabulary::FinishBy(const Vocabulary& training, int64_t* unseen) const {
  CHECK(kind_ == Kind::kCounting && training.kind_ == Kind::kFixed);
  std::vector<int32_t> final_ids(2 * counts_.size(), static_cast<int32_t>(kMissing));
  for (const auto& [value, id] : ids_) {
    const auto own = static_cast<int32_t>(training.LookUp(value));
    final_ids[2 * static_cast<size_t>(id)] = own;
    if (own == kRare) *unseen += counts_[static_cast<size_t>(id)].all;
  }
  return final_ids;
}

int64_t Vocabulary::HashId(std::string_view value) const {
  return IdOfHash(XXH64(value.data(), value.size(), 0), {size_ - 1, inverse_});
}

void Vocabulary::Ids(std::span<const std::string_view> values, int64_t row, int64_t position,
                     std::span<int64_t> ids) {
  CHECK(values.size() == ids.size());
  if (kind_ != Kind::kHash || values.size() == 1) {
    for (size_t i = 0; i < values.size(); ++i)
      ids[i] = Id(values[i], row + static_cast<int64_t>(i), position);
    return;
  }
  // By their lengths, on which a hash's branches depend: at random, each would be mispredicted.
  const auto length = [&](size_t i) { return std::min(values[i].size(), kLongHash); };
  // The ids serve as each value's place among those of its length until they are known.
  size_t begin[kLongHash + 2] = {};
  for (size_t i = 0; i < values.size(); ++i) ids[i] = static_cast<int64_t>(begin[length(i) + 1]++);
  std::partial_sum(std::begin(begin), std::end(begin), std::begin(begin));
  by_length_.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    by_length_[begin[length(i)] + static_cast<size_t>(ids[i])] = i;
  for (size_t n = 0; n <= kLongHash; ++n)
    kHashEach[n](values, std::span(by_length_).subspan(begin[n], begin[n + 1] - begin[n]),
                 {size_ - 1, inverse_}, ids);
}

int64_t Vocabulary::LookUp(std::string_view value) const {
  const auto found = ids_.find(value);
  return found == ids_.end() ? kRare : found->second;
}

void Vocabulary::TrainUnseen(std::optional<double> share, uint64_t seed,
                             const std::string& feature) {
  CHECK(kind_ == Kind::kCounting);
  sampled_share_ = share.value_or(kUnseenShare);
  only_if_needed_ = !share.has_value();
  unseen_key_ = PhiloxKey(seed, ("unseen/" + feature).c_str());
}

bool Vocabulary::IsSampled(int64_t row, int64_t position) {
  if (sampled_share_ == 0) return false;
  // Rows come in order, so that most of them find their word drawn already.
  constexpr int64_t kWords = 4;
  if (row / kWords != drawn_.rows || position != drawn_.position)
    drawn_ = {row / kWords, position,
              Philox::Draw(unseen_key_, static_cast<uint64_t>(row / kWords),
                           static_cast<uint64_t>(position))};
  return Philox::Uniform(drawn_.words[static_cast<size_t>(row % kWords)]) < sampled_share_;
}

int64_t Vocabulary::Count(std::string_view value, int64_t row, int64_t position) {
  auto found = ids_.find(value);
  if (found == ids_.end()) {
    if (counts_.size() >= static_cast<size_t>(kMaxValues))
      Fail(ErrorCode::kData, "a feature has more than {}: use hash:N",
           Counted(kMaxValues, "distinct value"));
    found = ids_.emplace(value, static_cast<int32_t>(counts_.size())).first;
    counts_.emplace_back();
  }
  const bool sampled = IsSampled(row, position);
  Lookups& lookups = counts_[static_cast<size_t>(found->second)];
  ++lookups.all;
  lookups.sampled += sampled;
  return 2 * int64_t{found->second} + sampled;
}

// Whether values below the threshold train the row for unseen values too little.
bool Vocabulary::NeedsUnseen() const {
  int64_t all = 0, rare = 0;
  for (size_t value = 0; value < counts_.size(); ++value) {
    const int64_t lookups = counts_[value].all;
    all += lookups;
    if (!WasKnown(value) && lookups < static_cast<int64_t>(size_)) rare += lookups;
  }
  return static_cast<double>(rare) < kUnseenShare * static_cast<double>(all);
}

std::vector<int32_t> Vocabulary::Finish() {
  CHECK(kind_ == Kind::kCounting);
  unseen_share_ = only_if_needed_ && !NeedsUnseen() ? 0 : sampled_share_;
  const auto count = [&](size_t value) {
    return counts_[value].all - (unseen_share_ > 0 ? counts_[value].sampled : 0);
  };
  const size_t known = static_cast<size_t>(known_);
  std::vector<size_t> kept;  // of those that are new
  for (size_t value = known + 1; value < counts_.size(); ++value)
    if (count(value) >= static_cast<int64_t>(size_)) kept.push_back(value);
  // Stable, because values are in order of first appearance.
  std::stable_sort(kept.begin(), kept.end(),
                   [&](size_t a, size_t b) { return count(a) > count(b); });
  std::vector<int32_t> own(counts_.size(), static_cast<int32_t>(kRare));
  own[0] = static_cast<int32_t>(kMissing);
  for (size_t i = 0; i < known; ++i) {
    own[i + 1] = OwnId(i);
    absent_ += counts_[i + 1].all == 0;
  }
  for (size_t i = 0; i < kept.size(); ++i) own[kept[i]] = OwnId(known + i);
  int64_t all = 0, rare = 0;
  for (size_t value = 0; value < counts_.size(); ++value) {
    all += counts_[value].all;
    if (own[value] == kRare) rare += counts_[value].all;
  }
  if (all > 0) rare_share_ = static_cast<double>(rare) / static_cast<double>(all);
  std::vector<int32_t> final_ids(2 * counts_.size());
  for (size_t value = 0; value < counts_.size(); ++value) {
    final_ids[2 * value] = own[value];
    final_ids[2 * value + 1] = unseen_share_ > 0 ? static_cast<int32_t>(kRare) : own[value];
  }
  values_.resize(known + kept.size());
  for (auto& [value, id] : ids_) {
    id = own[static_cast<size_t>(id)];
    if (id >= kFirstOwn) values_[static_cast<size_t>(id - kFirstOwn)] = value;
  }
  kind_ = Kind::kFixed;
  return final_ids;
}

int64_t Vocabulary::num_embeddings() const {
  CHECK(!provisional());
  return kind_ == Kind::kHash ? static_cast<int64_t>(size_)
                              : kFirstOwn + static_cast<int64_t>(values_.size());
}

void Vocabulary::Save(const std::string& folder, const std::string& feature,
                      DatasetManifest* manifest) const {
  CHECK(!provisional());
  if (kind_ == Kind::kHash) return;
  CreateDirectories(folder);
  NpyWriter bytes(folder + "/" + FeatureFile(feature, "values"), NpyType::kUint8);
  NpyWriter offsets(folder + "/" + FeatureFile(feature, "offsets"), NpyType::kInt64);
  offsets.AppendValue(int64_t{0});
  for (const std::string& value : values_) {
    bytes.Append(value.data(), static_cast<int64_t>(value.size()));
    offsets.AppendValue(bytes.rows());
  }
  for (NpyWriter* writer : {&bytes, &offsets}) {
    writer->Close();
    manifest->vocabulary[FeatureFile(feature, writer == &bytes ? "values" : "offsets")] = {
        NpyTypeName(writer->type()), writer->shape(), Sha256OfFile(writer->path())};
  }
}

std::vector<std::string> ReadVocabularyValues(const std::string& directory,
                                              const DatasetManifest& manifest,
                                              const std::string& feature) {
  std::vector<std::string> values;
  const std::optional<VocabularyFiles> files = OpenVocabulary(directory, manifest, feature);
  if (!files) return values;
  const std::string_view text = files->text();
  const std::span<const int64_t> at = files->at();
  for (size_t i = 0; i + 1 < at.size(); ++i)
    values.emplace_back(
        text.substr(static_cast<size_t>(at[i]), static_cast<size_t>(at[i + 1] - at[i])));
  return values;
}

// Save() writes such files.
bool VocabularyBeginsWith(const std::string& directory, const DatasetManifest& manifest,
                          const std::string& feature, const std::string& earlier,
                          int64_t earlier_num_embeddings) {
  const std::string spec = earlier.substr(0, earlier.rfind(':'));
  const int64_t num_values = earlier_num_embeddings - Vocabulary::kFirstOwn;
  const std::optional<VocabularyFiles> files = OpenVocabulary(directory, manifest, feature);
  if (!files || num_values < 0 || num_values >= std::ssize(files->at())) return false;
  const auto at = files->at().first(static_cast<size_t>(num_values) + 1);
  const auto digest = [](NpyType type, int64_t size, const void* data, size_t bytes) {
    Sha256 hash;
    hash.Update(NpyHeader(type, std::span(&size, 1)));
    hash.Update(data, bytes);
    return hash.HexDigest();
  };
  return earlier ==
         VocabularyIdentityOf(spec,
                              digest(NpyType::kUint8, at.back(), files->text().data(),
                                     static_cast<size_t>(at.back())),
                              digest(NpyType::kInt64, std::ssize(at), at.data(), at.size_bytes()));
}

}  // namespace renzan
