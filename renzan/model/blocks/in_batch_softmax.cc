#include "renzan/model/blocks/in_batch_softmax.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "renzan/base/config/config.h"
#include "renzan/base/error.h"
#include "renzan/base/trace.h"
#include "renzan/model/blocks/match_inputs.h"
#include "renzan/model/blocks/sum_in_lanes.h"
#include "renzan/model/softmax_tiles.h"
#include "renzan/nn/gemm.h"

namespace renzan {
namespace {

constexpr int64_t kTile = SoftmaxTile::kColumns;  // queries of a tile
// Of a sample without negatives: its item has the probability 1, up to rounding.
constexpr float kLogitWithoutNegatives = 30;
// Makes weights zero.
constexpr float kLogOfUnusedColumn = 1e30f;

int64_t WidthOfQueries(const BlockPlace& place) {
  CheckMatchInputs(place, 2, "takes two inputs, a query and an item");
  return WidthOfMatch(place, [&] {
    return fmt::format("takes a query and an item of one width, but its inputs have {} and {}",
                       ColumnsOf(place.inputs[kQueryInput]), ColumnsOf(place.inputs[kItemInput]));
  });
}

// Scores are computed in tiles of all items for some queries: [n, kTile]. None is kept between the
// passes, only each sample's log Σ exp.
class InBatchSoftmaxBlock final : public Block {
 public:
  InBatchSoftmaxBlock(const InBatchSoftmax& options, const BlockPlace& place)
      : Block({{place.name, 1}}),
        width_(WidthOfQueries(place)),
        scale_(static_cast<float>(1 / options.temperature)),
        precision_(place.buffers.precision()),
        scores_(place.buffers.Add(kTile, Precision::kFloat32)),
        logs_(place.buffers.Add(1, Precision::kFloat32)),
        rows_(place.buffers.AddRow(2 * kTile * width_)) {
    if (place.d_inputs) {
      d_items_ = place.buffers.Add(width_, Precision::kFloat32);
      d_scores_ = precision_ == Precision::kFloat32 ? scores_ : place.buffers.Add(kTile);
    }
    if (options.item.empty()) return;
    item_ = place.RequestItem({options.item, options.popularity});
    popularity_ = options.popularity;
  }

  bool GivesLogit() const override { return true; }
  bool IsMatch() const override { return true; }
  bool ComparesItems() const override { return true; }
  bool ComparesSamples() const override { return true; }
  double Flops(bool) const override { return 6 * static_cast<double>(width_); }
  double FlopsPerPair(bool d_inputs) const override {
    return (d_inputs ? 8 : 2) * static_cast<double>(width_);
  }

  void Forward(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const override {
    const TraceSpan span("in-batch softmax");
    if (!pass.training) return Score(pass, inputs, output);
    RightOperand queries(width_, kTile, precision_);
    for (int64_t first = 0; first < output->rows(); first += kTile) {
      const Tile tile = MakeTile(pass, inputs, first, &queries);
      float logs[kTile];
      tile.softmax.LogSumExp(logs);
      for (int64_t c = 0; c < tile.queries; ++c) {
        pass.buffers[logs_].Set(first + c, 0, logs[c]);
        const float score = tile.softmax.values->at(first + c, c);
        output->Set(first + c, 0,
                    std::isinf(logs[c]) && logs[c] < 0
                        ? kLogitWithoutNegatives
                        : static_cast<float>(double{score} - double{logs[c]}));
      }
    }
  }

  // The gradient of s_ij is d_i for j = i, −d_i exp(s_ij − log_i) for the negatives.
  void Backward(const BlockPass& pass, Inputs inputs, const BlockedMatrix& output,
                BlockedMatrix* d_output, WeightGradients*,
                std::span<BlockedMatrix* const> d_inputs) const override {
    const TraceSpan span("in-batch softmax");
    CHECK(pass.training);
    RightOperand queries(width_, kTile, precision_), of_items(kTile, width_, precision_);
    const bool any = d_inputs[0] != nullptr || d_inputs[1] != nullptr;
    for (int64_t first = 0; any && first < output.rows(); first += kTile) {
      const Tile tile = MakeTile(pass, inputs, first, &queries);
      const BlockedMatrix& d_scores = ToGradients(pass, tile, first, *d_output);
      if (d_inputs[0] != nullptr) WriteQueries(pass, d_scores, *inputs[1], first, d_inputs[0]);
      if (d_inputs[1] == nullptr) continue;
      for (int64_t b = 0; b < of_items.num_blocks(); ++b)
        of_items.SetBlock(b, pass.rows[rows_].data());
      Gemm(d_scores, of_items, {.accumulate = first > 0}, &pass.buffers[d_items_]);
    }
    if (d_inputs[1] == nullptr) return;
    float* const row = pass.rows[rows_].data();
    for (int64_t i = 0; i < output.rows(); ++i) {
      pass.buffers[d_items_].GetRow(i, 0, row, width_);
      d_inputs[1]->SetRow(i, 0, row, width_);
    }
  }

 private:
  struct Tile {
    SoftmaxTile softmax;
    int64_t queries;  // from `first` on
  };

  void Score(const BlockPass& pass, Inputs inputs, BlockedMatrix* output) const {
    float *const query = pass.rows[rows_].data(), *const item = query + width_;
    for (int64_t i = 0; i < output->rows(); ++i) {
      inputs[0]->GetRow(i, 0, query, width_);
      inputs[1]->GetRow(i, 0, item, width_);
      output->Set(i, 0, ProductOf(query, item, width_) * scale_);
    }
  }

  // Computes the products of some queries with all items, and leaves these queries in the row.
  Tile MakeTile(const BlockPass& pass, Inputs inputs, int64_t first, RightOperand* queries) const {
    const int64_t n = inputs[0]->rows();
    Tile tile{.softmax = {.values = &pass.buffers[scores_], .scale = scale_},
              .queries = std::min(kTile, n - first)};
    float* const row = pass.rows[rows_].data();
    for (int64_t c = 0; c < tile.queries; ++c)
      inputs[0]->GetRow(first + c, 0, row + c * width_, width_);
    std::fill(row + tile.queries * width_, row + kTile * width_, 0.0f);
    for (int64_t b = 0; b < queries->num_blocks(); ++b) queries->SetBlockOfTransposed(b, row);
    Gemm(*inputs[1], *queries, {}, tile.softmax.values);
    const SampleItems* const items = item_ ? &pass.items[*item_] : nullptr;
    for (int64_t c = 0; c < kTile; ++c) {
      const int64_t i = std::min(first + c, n - 1);
      tile.softmax.column_groups[c] =
          items ? items->first[static_cast<size_t>(i)] : static_cast<int32_t>(i);
    }
    if (items) tile.softmax.row_groups = items->first.data();
    if (popularity_) tile.softmax.offsets = items->log_shares.data();
    return tile;
  }

  // After MakeTile(): the gradients of its products.
  const BlockedMatrix& ToGradients(const BlockPass& pass, const Tile& tile, int64_t first,
                                   const BlockedMatrix& d_output) const {
    float logs[kTile], factors[kTile] = {};
    std::fill_n(logs, kTile, kLogOfUnusedColumn);
    for (int64_t c = 0; c < tile.queries; ++c) {
      const float log = pass.buffers[logs_].at(first + c, 0);
      if (std::isinf(log) && log < 0) continue;
      logs[c] = log;
      factors[c] = -d_output.at(first + c, 0) * scale_;
    }
    BlockedMatrix& scores = *tile.softmax.values;
    tile.softmax.Weights(logs, factors);
    for (int64_t c = 0; c < tile.queries; ++c) scores.Set(first + c, c, -factors[c]);
    if (precision_ == Precision::kFloat32) return scores;
    BlockedMatrix& rounded = pass.buffers[d_scores_];
    float row[kTile];
    for (int64_t j = 0; j < scores.rows(); ++j) {
      scores.GetRow(j, 0, row, kTile);
      rounded.SetRow(j, 0, row, kTile);
    }
    return rounded;
  }

  void WriteQueries(const BlockPass& pass, const BlockedMatrix& d_scores,
                    const BlockedMatrix& items, int64_t first, BlockedMatrix* d_queries) const {
    float* const rows = pass.rows[rows_].data() + kTile * width_;
    TransposedGemm(d_scores, items, nullptr, rows);
    for (int64_t c = 0; c < std::min(kTile, items.rows() - first); ++c)
      d_queries->SetRow(first + c, 0, rows + c * width_, width_);
  }

  int64_t width_;
  float scale_;
  Precision precision_;
  // Buffers; d_scores_ is scores_ in float32.
  size_t scores_, logs_, d_items_ = 0, d_scores_ = 0;
  size_t rows_;  // a tile's queries, and their gradients
  std::optional<size_t> item_;
  bool popularity_ = false;
};

}  // namespace

void InBatchSoftmax::Describe(ConfigFields& fields) {
  fields.Range("temperature", &temperature, 1e-4, 1e4, "products are divided by it");
  fields.Field("item", &item,
               "the feature whose ids name items: other samples with the same are no negatives");
  fields.Field("popularity", &popularity, "corrects for how often items are in the training data");
  fields.Require(!popularity || !item.empty(), "popularity",
                 "needs item, the feature whose ids are counted");
}

std::unique_ptr<Block> InBatchSoftmax::Make(const BlockPlace& place) const {
  return std::make_unique<InBatchSoftmaxBlock>(*this, place);
}

}  // namespace renzan
