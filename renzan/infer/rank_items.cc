#include "renzan/infer/rank_items.h"

#include <algorithm>
#include <cmath>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/trace.h"
#include "renzan/comm/gather.h"
#include "renzan/comm/heartbeat.h"
#include "renzan/model/catalogue/catalogue.h"

namespace renzan {
namespace {

bool IsPositive(float label) { return label > 0.5f; }

// What passes over rows with a model need.
struct Workers {
  Predictor& model;
  Communicator& comm;
  int64_t batch_size;
  const std::function<bool()>& should_stop;
};

// Computes the vectors of the items from `first` on, each from one row of a dataset, and gives them
// to all workers. Returns whether it was not stopped.
bool ComputeVectors(const Workers& workers, const ModelRows& rows, const ItemCandidates& candidates,
                    const MatchVectors& match, int64_t first, int64_t last, ItemRanks* ranks) {
  const TraceSpan span("item vectors");
  const size_t width = static_cast<size_t>(match.width);
  std::vector<float> all(static_cast<size_t>(workers.batch_size) * width), mine;
  std::vector<std::span<std::byte>> parts;
  const RowRange own = {workers.model.slice_begin(workers.batch_size),
                        workers.model.slice_end(workers.batch_size)};
  for (const RowRange& slice : AllGatherValues(workers.comm, own))
    parts.push_back(std::as_writable_bytes(std::span(all).subspan(
        static_cast<size_t>(slice.begin) * width, static_cast<size_t>(slice.size()) * width)));
  bool stopped = false;
  ForEachSlice(
      workers.model, workers.comm, *rows.dataset, rows.known_ids,
      {.count = last - first,
       .row = [&candidates, first](int64_t i) { return candidates.row(first + i); },
       .batch_size = workers.batch_size},
      [&](int64_t index, int64_t, const Batch& slice, const Batch* next) {
        // A single worker's last slice may be shorter than its part.
        mine.assign(static_cast<size_t>(own.size()) * width, 0.0f);
        MatchVectors vectors = match;
        vectors.items = mine.data();
        workers.model.PredictMatch(slice, next, vectors);
        workers.comm.AllGatherV(std::as_bytes(std::span(mine)), parts);
        const int64_t begin = first + index * workers.batch_size;
        const auto real = std::span(all).first(
            static_cast<size_t>(std::min(workers.batch_size, last - begin)) * width);
        if (!std::all_of(real.begin(), real.end(),
                         [](float value) { return std::isfinite(value); }))
          Fail(
              ErrorCode::kSoftware,
              "the vectors of some items are NaN or infinite, so items cannot be ranked: the model "
              "cannot be used, or the items hold values far outside the range it was trained on");
        ranks->Set(begin, real);
        stopped = workers.should_stop();
        return !stopped;
      });
  return !stopped;
}

}  // namespace

ItemRanking::ItemRanking(const Model& model, Communicator& comm, const ModelRows& evaluated,
                         const ModelRows& items, std::span<const EvaluatedOutput> outputs,
                         const RankingRequest& request)
    : evaluated_(evaluated), items_(items) {
  const std::vector<size_t> labels = LabelColumns(outputs, *evaluated.dataset);
  std::string number;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (std::optional<MatchOutput> match = model.MatchOf(outputs[i].output)) {
      if (outputs[i].loss == Loss::kSquaredError) {
        number = outputs[i].label;
        continue;
      }
      CheckItemsStandAlone(*match);
      ItemCandidates candidates(match->item, evaluated.dataset->schema());
      candidates.SkipReplaced(items.dataset->manifest());
      outputs_.push_back({outputs[i], labels[i], std::move(*match), std::move(candidates)});
    }
  if (outputs_.empty() && !number.empty())
    Fail(ErrorCode::kConfig,
         "{}: items are ranked for rows with the label 1, but '{}' is a number: import it with a "
         "rule that says which numbers are positive",
         request.key, Escape(number));
  if (outputs_.empty())
    Fail(ErrorCode::kConfig,
         "{}: this model cannot rank items: that takes {}, or model.blocks whose logit is given by "
         "match, in_batch_softmax or sampled_softmax",
         request.key, ModelsThatCompareItems());
  RunWithHeartbeats(comm, [&] { Read(); });
  Check(request);
}

void ItemRanking::Read() {
  ForEachBatch(items_, [&](const Batch& batch, int64_t first_row) {
    for (RankedOutput& one : outputs_)
      for (int64_t i = 0; i < batch.size; ++i)
        if (!one.candidates.IsReplaced(batch, i)) one.candidates.Add(batch, i, first_row + i);
  });
  for (RankedOutput& one : outputs_) one.of_items = one.candidates.size();
  ForEachBatch(evaluated_, [&](const Batch& batch, int64_t first_row) {
    for (RankedOutput& one : outputs_) {
      for (int64_t i = 0; i < batch.size; ++i) one.candidates.Add(batch, i, first_row + i);
      const std::span<const float> labels = batch.labels(one.label);
      one.positives += std::count_if(labels.begin(), labels.end(), IsPositive);
    }
  });
}

void ItemRanking::Check(const RankingRequest& request) const {
  for (const RankedOutput& one : outputs_) {
    const std::string of =
        one.output.name.empty() ? "" : fmt::format(" of the output {}", Escape(one.output.name));
    if (request.largest_k > one.candidates.size())
      Fail(request.code,
           "{}: there are fewer candidates than {}, only {}{}: give smaller ranks, or data with "
           "more items",
           request.key, request.largest_k, Counted(one.candidates.size(), "distinct item"), of);
    if (one.positives == 0)
      Fail(ErrorCode::kData,
           "{}: no evaluated row has the label 1{}, so there is no item whose rank could be "
           "measured: evaluate rows with positive labels",
           evaluated_.dataset->directory(), of);
  }
}

bool ItemRanking::Ranks(const std::string& output) const {
  return std::any_of(outputs_.begin(), outputs_.end(),
                     [&](const RankedOutput& one) { return one.output.name == output; });
}

std::vector<ItemRanking::Size> ItemRanking::sizes() const {
  std::vector<Size> sizes;
  for (const RankedOutput& one : outputs_)
    sizes.push_back({one.output.name, one.candidates.size(), one.match.width, one.positives});
  return sizes;
}

int64_t ItemRanking::bytes() const {
  int64_t all = 0, most = 0;
  for (const RankedOutput& one : outputs_) {
    all += one.candidates.bytes();
    most = std::max(most, one.candidates.size() * (one.match.width + 2) * 4);
  }
  return all + most;
}

std::optional<std::vector<Ranking>> ItemRanking::Rank(
    Predictor& model, Communicator& comm, int64_t batch_size,
    const std::function<bool()>& should_stop) const {
  const Workers workers{model, comm, batch_size, should_stop};
  std::vector<Ranking> rankings;
  for (const RankedOutput& one : outputs_) {
    const int64_t count = one.candidates.size();
    const MatchVectors match{.output = one.output.output, .width = one.match.width};
    ItemRanks ranks(count, one.match.width);
    if (!ComputeVectors(workers, items_, one.candidates, match, 0, one.of_items, &ranks) ||
        !ComputeVectors(workers, evaluated_, one.candidates, match, one.of_items, count, &ranks))
      return std::nullopt;
    RankingMetrics metrics(count);
    if (!RankRows(one, ranks, model, comm, batch_size, should_stop, &metrics)) return std::nullopt;
    rankings.push_back({one.output.name, count - one.of_items, MergeMetrics(comm, metrics)});
  }
  return rankings;
}

bool ItemRanking::RankRows(const RankedOutput& one, const ItemRanks& ranks, Predictor& model,
                           Communicator& comm, int64_t batch_size,
                           const std::function<bool()>& should_stop,
                           RankingMetrics* metrics) const {
  const TraceSpan span("rank items");
  const int64_t width = one.match.width;
  std::vector<float> vectors, queries;
  std::vector<int64_t> own, of_own;
  bool stopped = false;
  ForEachSlice(model, comm, *evaluated_.dataset, evaluated_.known_ids,
               {.count = evaluated_.rows.size(),
                .row = [first = evaluated_.rows.begin](int64_t i) { return first + i; },
                .batch_size = batch_size},
               [&](int64_t, int64_t real, const Batch& slice, const Batch* next) {
                 vectors.resize(static_cast<size_t>(slice.size * width));
                 model.PredictMatch(
                     slice, next,
                     {.output = one.output.output, .width = width, .queries = vectors.data()});
                 queries.clear();
                 own.clear();
                 for (int64_t i = 0; i < real; ++i) {
                   if (!IsPositive(slice.labels(one.label)[static_cast<size_t>(i)])) continue;
                   const float* const query = vectors.data() + i * width;
                   queries.insert(queries.end(), query, query + width);
                   own.push_back(one.candidates.NumberOf(slice, i));
                 }
                 of_own.resize(own.size());
                 ranks.Rank(queries, own, model.pool(), of_own);
                 for (const int64_t rank : of_own) metrics->Add(rank);
                 stopped = should_stop();
                 return !stopped;
               });
  return !stopped;
}

}  // namespace renzan
