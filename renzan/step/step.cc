#include "renzan/step/step.h"

#include "renzan/base/error.h"
#include "renzan/base/trace.h"
#include "renzan/planning/device_options.h"
#include "renzan/run_spec/schedule.h"

namespace renzan {

void Step::Predict(const Batch& slice, std::span<float> logits) {
  PreparedBatches batches = MakeBatches();
  Predict(slice, nullptr, &batches, logits);
}

void Step::PredictMatch(const Batch&, const Batch*, PreparedBatches*, const MatchVectors&) {
  CHECK(false);
}

int Step::batch_readers() const {
  return BatchReaders(spec(), state_.embeddings().map().world_size(), state_.pool().num_threads());
}

void Step::Observe(int64_t step, std::span<const OutputMetrics> metrics, int64_t non_finite_before,
                   bool dense_finite, bool tables_finite) {
  if (!finiteness_.ok()) return;
  const Finiteness now{.bad_step = step + 1,
                       .predictions = NumNonFinite(metrics) != non_finite_before,
                       .dense = !dense_finite,
                       .tables = !tables_finite};
  if (now.predictions || now.dense || now.tables) finiteness_ = now;
}

void Step::AddMetrics(std::span<const float> logits, std::span<const float> labels,
                      std::span<OutputMetrics> metrics) {
  const TraceSpan span("metrics");
  state_.pool().ParallelRanges(logits.size(), [&](int thread, size_t begin, size_t end) {
    metrics[static_cast<size_t>(thread)].Add(logits.subspan(begin, end - begin),
                                             labels.subspan(begin, end - begin));
  });
}

std::span<const IdsView> Step::IdsOf(const Batch& slice) {
  ids_.clear();
  for (const size_t f : lookups_.features) {
    const FeatureIds& own = lookups_.IdsOf(slice, f);
    ids_.push_back({own.values, own.offsets, own.weights});
  }
  return ids_;
}

double Step::learning_rate_factor(const StepInput& input) const {
  return input.rate_factor * LearningRateFactor(spec().learning_rates.schedule, input.step);
}

}  // namespace renzan
