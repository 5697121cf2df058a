#include "renzan/step/host_step.h"

#include <algorithm>
#include <cmath>

#include "renzan/base/error.h"
#include "renzan/base/trace.h"
#include "renzan/optim/finite.h"
#include "renzan/optim/gradient_norm.h"
#include "renzan/optim/optimizer_steps.h"

namespace renzan {

HostStep::HostStep(ModelState& state, Communicator& comm)
    : Step(state),
      dense_gradients_(comm, state.pool(), state.model().layout(),
                       DenseGradientOptionsOf(state.spec().numerics)),
      gradient_(state.parameters().size()),
      running_statistics_(state.model().layout(), state.spec().numerics.virtual_workers),
      finite_(static_cast<size_t>(state.pool().num_threads())) {}

// Exchanges run while other stages work: the next batch's ids from this step's lookup to its end,
// pooled rows during packing, the gradients of rows during the local part of the dense reduction,
// and the dense gradients during the update of the tables, unless clipping needs the norm of all
// gradients first.
void HostStep::Run(const StepInput& input) {
  const TraceSpan span("step");
  CHECK(input.slice.size == slice_end() - slice_begin() &&
        input.slice.negatives.size() == spec().negatives.size());
  const int64_t non_finite_before = NumNonFinite(input.metrics);
  const ExchangedIds ids = ExchangeIds(input.slice);
  const PooledInFlight sent = LookUp(ids);
  BeginNextIds(input.next);
  Pack();
  const PooledRows pooled = Receive(sent);
  const BackwardResult backward = ForwardAndBackward(input, pooled);
  const GradientsInFlight returning = Send(backward.pooled);
  const DenseSumInFlight reducing = BeginReduction(backward.dense);
  const ArrivedGradients rows = Receive(returning);
  bool tables_finite = true;
  if (spec().learning_rates.max_gradient_norm > 0) {
    const DenseSum dense = EndReduction(reducing);
    tables_finite = UpdateTables(input, rows, Clip(dense, rows));
    UpdateDense(input, dense);
  } else {
    tables_finite = UpdateTables(input, rows, 1);
    UpdateDense(input, EndReduction(reducing));
  }
  EndNextIds();
  Observe(input.step, input.metrics, non_finite_before, CheckDense(), tables_finite);
}

ModelState& HostStep::Updated() {
  const TraceSpan span(kCatchUpSpan);
  embeddings().CatchUp();
  return state_;
}

ExchangedIds HostStep::ExchangeIds(const Batch& slice) {
  const TraceSpan span("input_dist");
  batches_.Begin(IdsOf(slice));
  return {batches_.current(), batches_.current_ids()};
}

PooledInFlight HostStep::LookUp(const ExchangedIds& ids) {
  const TraceSpan span("lookup");
  embeddings().LookUp(&ids.batch);
  return {ids};
}

void HostStep::BeginNextIds(const Batch* next) {
  const TraceSpan span("input_dist");
  if (next != nullptr) batches_.BeginNext(IdsOf(*next));
}

PooledRows HostStep::Receive(const PooledInFlight& sent) {
  const TraceSpan span("output_dist");
  embeddings().ReceivePooled();
  return {sent.ids};
}

GradientsInFlight HostStep::Send(const PooledGradients& gradients) {
  const TraceSpan span("gradients to owners");
  embeddings().SendGradients(gradients.ids.batch);
  batches_.ContinueNext();
  return {gradients.ids};
}

DenseSumInFlight HostStep::BeginReduction(const DenseLeaves&) {
  const TraceSpan span("reduce dense gradients");
  dense_gradients_.Start(gradient_.span());
  return {};
}

ArrivedGradients HostStep::Receive(const GradientsInFlight& sent) {
  const TraceSpan span("gradients to owners");
  embeddings().ReceiveGradients(sent.ids.batch);
  return {sent.ids};
}

DenseSum HostStep::EndReduction(const DenseSumInFlight&) {
  const TraceSpan span("reduce dense gradients");
  dense_gradients_.Continue();
  dense_gradients_.Finish();
  return {gradient_.span()};
}

float HostStep::Clip(const DenseSum& dense, const ArrivedGradients& rows) {
  const TraceSpan span("clip gradients");
  state_.dense_optimizer().ClearFrozen(dense.values);
  const double squared =
      SumOfSquares(state_.pool(), dense.values) + embeddings().SquaredGradientNorm(rows.ids.batch);
  gradient_norm_ = std::sqrt(squared);
  const float factor = ClipFactor(squared, spec().learning_rates.max_gradient_norm);
  if (factor != 1.0f)
    state_.pool().ParallelRanges(dense.values.size(), [&](int, size_t begin, size_t end) {
      ScaleValues(factor, static_cast<int64_t>(end - begin), dense.values.data() + begin);
    });
  return factor;
}

bool HostStep::UpdateTables(const StepInput& input, const ArrivedGradients& rows, float clip) {
  const TraceSpan span("sparse update");
  const double rate = learning_rate_factor(input) * spec().learning_rates.sparse;
  const bool finite = embeddings().Update(
      rows.ids.batch, {.learning_rate = rate,
                       .gradient_scale = clip,
                       .step = input.step,
                       .optimizer_step = embeddings().earlier_steps() + input.step});
  embeddings().Unpin(&rows.ids.batch);
  return finite;
}

void HostStep::UpdateDense(const StepInput& input, const DenseSum& gradient) {
  const TraceSpan span("dense update");
  const double rate = learning_rate_factor(input) * spec().learning_rates.dense;
  const std::span<float> parameters = state_.parameters().span();
  running_statistics_.Compute(dense_gradients_.statistics(), parameters);
  state_.dense_optimizer().Apply(state_.pool(), rate, input.step, gradient.values, parameters);
  running_statistics_.Write(parameters);
  state_.Changed();
}

void HostStep::EndNextIds() {
  const TraceSpan span("input_dist");
  batches_.EndNext();
}

bool HostStep::CheckDense() {
  const TraceSpan span("check dense part");
  return !finiteness_.ok() || DenseIsFinite();
}

bool HostStep::DenseIsFinite() {
  std::fill(finite_.begin(), finite_.end(), char{1});
  const std::span<const float> parameters = state_.parameters().span();
  state_.pool().ParallelRanges(parameters.size(), [&](int thread, size_t begin, size_t end) {
    char& mine = finite_[static_cast<size_t>(thread)];
    mine = AllFinite(parameters.subspan(begin, end - begin));
    for (DenseOptimizer::State& state : state_.dense_optimizer().states())
      mine = mine && AllFinite(state.values.span().subspan(begin, end - begin));
  });
  return std::find(finite_.begin(), finite_.end(), 0) == finite_.end();
}

PooledRows HostStep::BeginForward(const Batch& slice, const Batch* next, PreparedBatches* batches) {
  CHECK(slice.size == slice_end() - slice_begin());
  batches->Begin(IdsOf(slice));
  const ExchangedIds ids = {batches->current(), batches->current_ids()};
  embeddings().LookUp(&ids.batch);
  if (next != nullptr) batches->BeginNext(IdsOf(*next));
  Pack();
  embeddings().ReceivePooled();
  batches->ContinueNext();
  return {ids};
}

void HostStep::EndForward(const PooledRows& pooled, PreparedBatches* batches) {
  embeddings().Unpin(&pooled.ids.batch);
  batches->EndNext();
}

void HostStep::Predict(const Batch& slice, const Batch* next, PreparedBatches* batches,
                       std::span<float> logits) {
  const TraceSpan span("predict");
  CHECK(std::ssize(logits) == slice.size * std::ssize(spec().model.outputs));
  const PooledRows pooled = BeginForward(slice, next, batches);
  Forward(slice, pooled, logits);
  EndForward(pooled, batches);
}

void HostStep::PredictMatch(const Batch& slice, const Batch* next, PreparedBatches* batches,
                            const MatchVectors& vectors) {
  const TraceSpan span("predict match");
  const PooledRows pooled = BeginForward(slice, next, batches);
  ForwardMatch(slice, pooled, vectors);
  EndForward(pooled, batches);
}

void HostStep::ForwardMatch(const Batch&, const PooledRows&, const MatchVectors&) { CHECK(false); }

}  // namespace renzan
