#include "renzan/data/synth/teacher.h"

#include <algorithm>
#include <cmath>

#include "renzan/base/error.h"
#include "renzan/base/philox.h"
#include "renzan/data/sample_order.h"

namespace renzan {
namespace {

// Chosen so that the label rate is about 0.25, the best AUC about 0.80, and a small DLRM comes
// close to it after one epoch over a million rows.
constexpr double kBias = -1.45;
constexpr double kCategoricalVariance = 1.1, kDenseVariance = 0.65, kPairVariance = 0.05;
constexpr size_t kMaxPairs = 5;
// Ranks well beyond this one contribute little to the logit.
constexpr double kWeightRank = 8;
constexpr int64_t kSmallestTable = 4;
constexpr int kGuideBits = 12;
// Bags have 0 to 6 values, 3 on average.
constexpr uint32_t kBagSizes = 7;
constexpr size_t kMissingRank = 2;

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The sequence of a row's random words.
class Words {
 public:
  Words(uint64_t key, int64_t row) : key_(key), row_(static_cast<uint64_t>(row)) {}
  uint32_t Next() {
    if (used_ % 4 == 0) block_ = Philox::Draw(key_, row_, used_ / 4);
    return block_[used_++ % 4];
  }
  double Uniform() { return (static_cast<double>(Next()) + 0.5) * 0x1.0p-32; }
  double Normal() {
    const uint32_t a = Next();
    return Philox::Normal(a, Next());
  }

 private:
  uint64_t key_, row_, used_ = 0;
  Philox::Block block_{};
};

// A bijection of 32-bit words (the finalizer of MurmurHash3).
uint32_t Mix(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85ebca6b;
  x = (x ^ (x >> 13)) * 0xc2b2ae35;
  return x ^ (x >> 16);
}

// Column `c` of a [ranks, columns] array: mean 0 and the given variance under `share`.
void Standardise(const std::vector<double>& share, size_t columns, size_t c, double variance,
                 std::vector<float>* values) {
  double mean = 0, square = 0;
  for (size_t k = 0; k < share.size(); ++k) {
    const double value = (*values)[k * columns + c];
    mean += share[k] * value;
    square += share[k] * value * value;
  }
  const double spread = std::sqrt(std::max(square - mean * mean, 1e-12));
  for (size_t k = 0; k < share.size(); ++k) {
    float& value = (*values)[k * columns + c];
    value = static_cast<float>((value - mean) / spread * std::sqrt(variance));
  }
}

}  // namespace

size_t Teacher::Table::Rank(uint32_t word) const {
  size_t k = guide[word >> (32 - kGuideBits)];
  while (k + 1 < threshold.size() && threshold[k + 1] <= word) ++k;
  return k;
}

Teacher::Table Teacher::MakeTable(uint64_t index, int64_t size, bool has_missing,
                                  double weight_variance) const {
  const auto n = static_cast<size_t>(size);
  Words words(PhiloxKey(options_.seed, "synth/table", index), 0);
  Table table;
  table.text_key = words.Next();
  const double exponent = 1.25 + 0.3 * words.Uniform();

  double total = 0;
  for (size_t k = 0; k < n; ++k) {
    table.share.push_back(std::pow(static_cast<double>(k + 1), -exponent));
    total += table.share.back();
  }
  double sum = 0;
  for (double& share : table.share) {
    table.threshold.push_back(
        static_cast<uint32_t>(std::min(std::floor(sum / total * 0x1.0p32), 0x1.0p32 - 1)));
    sum += share;
    share /= total;
  }
  size_t k = 0;
  for (uint64_t bucket = 0; bucket < (1u << kGuideBits); ++bucket) {
    const auto first = static_cast<uint32_t>(bucket << (32 - kGuideBits));
    while (k + 1 < n && table.threshold[k + 1] <= first) ++k;
    table.guide.push_back(static_cast<uint32_t>(k));
  }

  // Ids are not ordered by frequency, as after hashing.
  const KeyedPermutation shuffled(PhiloxKey(options_.seed, "synth/ids", index), 0, size);
  for (size_t rank = 0; rank < n; ++rank)
    table.id.push_back(1 + static_cast<int32_t>(shuffled(static_cast<int64_t>(rank))));
  if (has_missing) table.id[kMissingRank] = 0;

  for (size_t rank = 0; rank < n; ++rank)
    table.weight.push_back(static_cast<float>(
        words.Normal() / std::sqrt(1 + static_cast<double>(rank) / kWeightRank)));
  Standardise(table.share, 1, 0, weight_variance, &table.weight);
  return table;
}

// Pairs of neighbouring middle-sized tables: small enough that their ids often occur together.
void Teacher::MakePairs() {
  std::vector<size_t> candidates;
  for (size_t f = 0; f < one_hot_.size(); ++f)
    if (one_hot_[f].share.size() <= 1000) candidates.push_back(f);
  const size_t skip = candidates.size() > 2 * kMaxPairs ? candidates.size() - 2 * kMaxPairs : 0;
  for (size_t i = skip; i + 1 < candidates.size(); i += 2)
    pairs_.emplace_back(candidates[i], candidates[i + 1]);
  if (pairs_.empty()) return;
  // <u, v> of independent u and v with covariances c I has variance kLatentDim c^2.
  const double variance = std::sqrt(kPairVariance / static_cast<double>(pairs_.size()) /
                                    static_cast<double>(kLatentDim));
  for (const auto& pair : pairs_) {
    for (size_t f : {pair.first, pair.second}) {
      Table& table = one_hot_[f];
      Words words(PhiloxKey(options_.seed, "synth/latent", f), 0);
      for (size_t k = 0; k < table.share.size(); ++k)
        for (size_t c = 0; c < kLatentDim; ++c)
          table.latent.push_back(static_cast<float>(
              words.Normal() / std::sqrt(1 + static_cast<double>(k) / kWeightRank)));
      for (size_t c = 0; c < kLatentDim; ++c)
        Standardise(table.share, kLatentDim, c, variance, &table.latent);
    }
  }
}

Teacher::Teacher(const TeacherOptions& options)
    : options_(options), row_key_(PhiloxKey(options.seed, "synth/row")) {
  if (options.num_dense < 0 || options.num_one_hot < 0 || options.num_multi_hot < 0 ||
      options.num_one_hot + options.num_multi_hot < 1)
    Fail(ErrorCode::kUsage, "generated data needs at least one categorical feature");
  if (options.rows_per_table < kSmallestTable || options.rows_per_table > 100'000'000)
    Fail(ErrorCode::kUsage, "--rows-per-table must be between {} and 100000000, not {}",
         kSmallestTable, options.rows_per_table);
  const int tables = options.num_one_hot + options.num_multi_hot;
  const double variance = kCategoricalVariance / tables;

  schema_.label = "label";
  schema_.dense_transforms.assign(static_cast<size_t>(options.num_dense), "log");
  Words words(PhiloxKey(options.seed, "synth/dense"), 0);
  for (int d = 0; d < options.num_dense; ++d) {
    schema_.dense.push_back(fmt::format("I{}", d + 1));
    DenseColumn column;
    column.mu = 0.5 + 4 * words.Uniform();
    column.sigma = 0.7 + 0.6 * words.Uniform();
    column.missing = d % 3 == 1 ? 0.1 : 0;
    // log(x + 1) is close to the normal itself; missing values enter as 0.
    column.mean = column.mu * (1 - column.missing);
    column.scale = column.sigma;
    column.weight = words.Normal();
    dense_.push_back(column);
  }
  double square = 0;
  for (const DenseColumn& column : dense_) square += column.weight * column.weight;
  for (DenseColumn& column : dense_) column.weight *= std::sqrt(kDenseVariance / square);

  // Sizes in geometric steps from the smallest to the largest.
  const auto size_of = [&](int index, int count) {
    const double ratio = static_cast<double>(options.rows_per_table) / kSmallestTable;
    const double step = count > 1 ? static_cast<double>(index) / (count - 1) : 1;
    return std::llround(kSmallestTable * std::pow(ratio, step));
  };
  for (int f = 0; f < options.num_one_hot; ++f) {
    const int64_t size = size_of(f, options.num_one_hot);
    one_hot_.push_back(MakeTable(static_cast<uint64_t>(f), size, f % 4 == 2, variance));
    schema_.categorical.push_back({.name = fmt::format("C{}", f + 1), .num_embeddings = size + 1});
  }
  MakePairs();
  for (int f = 0; f < options.num_multi_hot; ++f) {
    const int64_t size = std::min<int64_t>(size_of(f, options.num_multi_hot), 2000);
    multi_hot_.push_back(
        MakeTable(1'000'000 + static_cast<uint64_t>(f), size, false, variance / (kBagSizes / 2)));
    schema_.categorical.push_back(
        {.name = fmt::format("M{}", f + 1), .num_embeddings = size + 1, .multi_hot = true});
  }
}

void Teacher::Draw(int64_t row, SynthRow* out) const {
  Words words(row_key_, row);
  double logit = kBias;
  out->one_hot.resize(one_hot_.size());
  std::vector<size_t> ranks(one_hot_.size());
  for (size_t f = 0; f < one_hot_.size(); ++f) {
    ranks[f] = one_hot_[f].Rank(words.Next());
    out->one_hot[f] = one_hot_[f].id[ranks[f]];
    logit += one_hot_[f].weight[ranks[f]];
  }
  for (const auto& [f, g] : pairs_)
    for (size_t c = 0; c < kLatentDim; ++c)
      logit += static_cast<double>(one_hot_[f].latent[ranks[f] * kLatentDim + c]) *
               one_hot_[g].latent[ranks[g] * kLatentDim + c];

  out->dense.resize(dense_.size());
  for (size_t d = 0; d < dense_.size(); ++d) {
    const DenseColumn& column = dense_[d];
    const double value = std::floor(std::exp(column.mu + column.sigma * words.Normal()));
    const bool missing = column.missing > 0 && words.Uniform() < column.missing;
    out->dense[d] = missing ? SynthRow::kMissingDense : static_cast<int64_t>(value);
    const double seen = missing ? 0 : std::log(value + 1);
    logit += column.weight * (seen - column.mean) / column.scale;
  }

  out->multi_hot.resize(multi_hot_.size());
  for (size_t f = 0; f < multi_hot_.size(); ++f) {
    std::vector<int64_t>& bag = out->multi_hot[f];
    bag.resize(words.Next() % kBagSizes);
    for (int64_t& id : bag) {
      const size_t rank = multi_hot_[f].Rank(words.Next());
      id = multi_hot_[f].id[rank];
      logit += multi_hot_[f].weight[rank];
    }
  }
  out->probability = Sigmoid(logit);
  out->label = words.Uniform() < out->probability ? 1.0f : 0.0f;
}

uint32_t Teacher::TextValue(size_t feature, int64_t id) const {
  return Mix(static_cast<uint32_t>(id) ^ one_hot_[feature].text_key);
}

}  // namespace renzan
