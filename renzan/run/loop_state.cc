#include "renzan/run/loop_state.h"

#include <cmath>
#include <cstring>

#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/infer/evaluate.h"
#include "renzan/quality/gradient_range.h"

namespace renzan {
namespace {

constexpr const char* kWindow = "progress.window";
constexpr const char* kGradientRange = "progress.gradient_range";
constexpr const char* kWatch = "progress.watch";
constexpr const char* kMilliseconds = "progress.milliseconds";
constexpr const char* kEvaluations = "progress.evaluations";
constexpr const char* kEvaluationDue = "progress.evaluation_due";

// 0 where it is missing.
int64_t Number(const ProgressTensors& tensors, const char* key) {
  const auto found = tensors.find(key);
  return found != tensors.end() && found->second.size() == 1 ? found->second.front() : 0;
}

}  // namespace

ProgressTensors SaveProgress(Communicator& comm, const LoopState& state) {
  BinaryMetrics mine;
  for (const BinaryMetrics& metrics : state.window) mine.Merge(metrics);
  const WireRange range = MergeRanges(comm, state.gradient_range);
  ProgressTensors tensors = SaveEvaluations(state.evaluations);
  tensors[kWindow] = MergeMetrics(comm, mine).ToIntegers();
  tensors[kGradientRange] = {range.values, range.overflowed, range.underflowed};
  tensors[kWatch] = state.watch.ToIntegers();
  tensors[kMilliseconds] = {std::llround(state.seconds * 1000)};
  tensors[kEvaluationDue] = {state.evaluation_due ? 1 : 0};
  return tensors;
}

ProgressTensors SaveEvaluations(const EvaluationRecord& evaluations) {
  if (evaluations.empty()) return {};
  return {{kEvaluations, evaluations.ToIntegers()}};
}

void RestoreProgress(const ProgressTensors& tensors, int rank, LoopState* state) {
  CHECK(!state->window.empty());
  const auto find = [&](const char* key) -> const std::vector<int64_t>* {
    const auto found = tensors.find(key);
    return found == tensors.end() ? nullptr : &found->second;
  };
  // Merging is exact, so one thread may hold the whole window.
  if (const auto* window = find(kWindow); window != nullptr && rank == 0)
    state->window[0] = BinaryMetrics::FromIntegers(*window);
  if (const auto* range = find(kGradientRange); range != nullptr && range->size() == 3 && rank == 0)
    state->gradient_range = {(*range)[0], (*range)[1], (*range)[2]};
  if (const auto* watch = find(kWatch)) state->watch = DivergenceWatch::FromIntegers(*watch);
  if (const auto* evaluations = find(kEvaluations))
    if (!state->evaluations.Restore(*evaluations) && rank == 0)
      LogWarning(
          "results of earlier evaluations are dropped: training.early_stopping.metric, the rows of "
          "data.eval or their weights have changed, or an earlier version compared them without "
          "weights");
  state->seconds = static_cast<double>(Number(tensors, kMilliseconds)) / 1000;
  state->evaluation_due = EvaluationDue(tensors);
}

bool EvaluationDue(const ProgressTensors& tensors) { return Number(tensors, kEvaluationDue) != 0; }

}  // namespace renzan
